from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from pinoise.errors import UserError
from pinoise.files import WriteError, read_json, write_json, write_text
from pinoise.networks import read_stored, read_tensors, write_tensors


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
@pytest.mark.parametrize(("mask", "rights"), [(0o022, 0o644), (0o077, 0o600)])
def test_tensors_have_the_rights_of_any_new_file(mask: int, rights: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_tensors(tmp_path / "t.safetensors", {"a": torch.ones(2)})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.safetensors").stat().st_mode) == rights


def test_tensors_come_back_with_their_header(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"transposed": base.T, "row": base[1], "flag": torch.tensor(True), "grad": base.clone().requires_grad_()}
    write_tensors(path, tensors, metadata={"pinoise": "σ"})
    found, metadata = read_stored(path)
    assert metadata == {"pinoise": "σ"}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    with safe_open(path, framework="pt") as file:
        assert list(file.metadata()) == ["pinoise"]  # a single entry, as several come in any order


def test_files_replace_earlier_ones_and_leave_nothing_aside(tmp_path: Path) -> None:
    for text in ("first", "σ ≥ 0\n"):
        write_text(tmp_path / "a.txt", text)
    write_json(tmp_path / "a.json", {"nan": float("nan"), "list": (1, 2)})
    write_tensors(tmp_path / "a.safetensors", {"a": torch.zeros(1)})
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "σ ≥ 0\n"
    assert json.loads((tmp_path / "a.json").read_text()) == {"nan": None, "list": [1, 2]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.safetensors", "a.txt"]


def test_a_write_that_fails_keeps_the_file_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "kept")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left"):
        write_text(path, "new")
    assert path.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_missing_or_damaged_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.json is missing: the folder is not a finished run"):
        read_json(tmp_path / "gone.json")
    with pytest.raises(UserError, match=r"gone\.safetensors is missing: train to the end first"):
        read_tensors(tmp_path / "gone.safetensors")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json is not valid JSON"):
        read_json(tmp_path / "bad.json")
    (tmp_path / "bad.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(UserError, match=r"bad\.safetensors cannot be read as safetensors"):
        read_tensors(tmp_path / "bad.safetensors")
