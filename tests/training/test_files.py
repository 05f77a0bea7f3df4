from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors import safe_open

from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import WriteError, read_json, write_json, write_text
from pinoise.networks import read_stored, read_tensors, write_tensors
from pinoise.training.build.model import read_standardizer, standardizer_tensors


@pytest.mark.parametrize("scaling", ["features", "compressed", "global", "rows"])
def test_a_standardiser_goes_through_a_file_unchanged(tmp_path: Path, scaling: Any) -> None:
    x = np.random.default_rng(0).gamma(1.0, size=(40, 2, 3)) * [1.0, 1e6, 1e-6]
    x[:, 1, 1] = 7.0
    before = Standardizer.fit(x, scaling=scaling)
    write_tensors(tmp_path / "s.safetensors", standardizer_tensors(before))
    after = read_standardizer(tmp_path / "s.safetensors")
    for name in ("mean", "scale", "deviation"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == np.float64
    assert after.unit_rows is before.unit_rows is (scaling == "rows")
    np.testing.assert_array_equal(after.apply(x), before.apply(x))
    norms = after.norms(x)
    np.testing.assert_array_equal(after.undo(before.apply(x), norms), before.undo(before.apply(x), norms))


def test_the_columns_of_a_standardiser_are_kept(tmp_path: Path) -> None:
    x = np.hstack([np.arange(6.0)[:, None], np.eye(3)[[0, 1, 2, 0, 1, 2]]])
    before = Standardizer.fit(x, spans=((1, 4),))
    tensors = standardizer_tensors(before)
    write_tensors(tmp_path / "s.safetensors", tensors)
    after = read_standardizer(tmp_path / "s.safetensors")
    assert after.spans == ((1, 4),)
    np.testing.assert_array_equal(after.apply(x), before.apply(x))


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
@pytest.mark.parametrize(("mask", "rights"), [(0o022, 0o644), (0o077, 0o600)])
def test_tensors_have_the_rights_of_any_new_file(mask: int, rights: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_tensors(tmp_path / "t.safetensors", {"a": torch.ones(2)})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.safetensors").stat().st_mode) == rights


def test_the_standardiser_of_sparse_rows_is_kept_too(tmp_path: Path) -> None:
    x = sp.csr_array(np.random.default_rng(0).poisson(0.05, size=(50, 30)))
    before = Standardizer.fit(x)
    write_tensors(tmp_path / "s.safetensors", standardizer_tensors(before))
    assert read_standardizer(tmp_path / "s.safetensors").unit_rows


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
