from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.experiments.cache import CellCache, cell_key, default_cache_folder

PARTS = {"data": "wine", "settings": {"epochs": 20, "views": ["σ", None]}, "rate": 0.1, "method": "scarf"}

needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="forks its writers")


def die_amid_a_write(folder: Path) -> None:
    def half(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text.encode()[: len(text) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        CellCache(folder).put(PARTS, {"knn": 0.25})


def test_a_key_is_the_checksum_of_sorted_json() -> None:
    text = '{"a":[1,2.0,true,null],"b":{"c":"\\u03c3"}}'
    assert cell_key({"b": {"c": "σ"}, "a": (1, 2.0, True, None)}) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("other", [{"a": 1.0}, {"a": True}, {"a": "1"}, {"a": None}, {"a": [1]}, {"b": 1}, {}])
def test_other_parts_have_another_key(other: dict[str, Any]) -> None:
    assert cell_key(other) != cell_key({"a": 1})


@pytest.mark.parametrize("value", [np.float32(1), np.int64(1), np.zeros(2), {1, 2}, b"x", Path("x"), float("nan")])
def test_what_json_does_not_have_is_no_part_of_a_key(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        cell_key({"deep": [{"a": value}]})


def test_a_cell_is_found_by_another_cache_of_the_same_folder(tmp_path: Path) -> None:
    value = {"knn": 1 / 3, "draws": (0.1, 1e-300), "flags": ["shrink"], "seconds": 12, "note": "σ \udcff"}
    folder = tmp_path / "not" / "there"
    assert CellCache(folder).get(PARTS) is None
    CellCache(folder).put(PARTS, value)
    assert CellCache(folder).get(PARTS) == {**value, "draws": [0.1, 1e-300]}
    assert CellCache(folder).get({**PARTS, "rate": 0.2}) is None


def test_the_first_value_of_a_cell_stays(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    cache.put(PARTS, {"knn": 0.5})
    cache.put(PARTS, {"knn": 0.75})
    assert cache.get(PARTS) == {"knn": 0.5}


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'"text"', b"\xff\xfe", b"{}", b"[" * 100_000])
def test_a_damaged_or_foreign_file_counts_as_absent_and_is_written_again(tmp_path: Path, content: bytes) -> None:
    cache = CellCache(tmp_path)
    cache.put(PARTS, {"knn": 0.5})
    (path,) = tmp_path.glob("*/*")
    path.write_bytes(content)
    assert cache.get(PARTS) is None
    cache.put(PARTS, {"knn": 0.75})
    assert cache.get(PARTS) == {"knn": 0.75}


def test_a_cell_under_the_name_of_another_counts_as_absent(tmp_path: Path) -> None:
    cache, other = CellCache(tmp_path), {**PARTS, "rate": 0.2}
    cache.put(PARTS, {"knn": 0.5})
    cache.put(other, {"knn": 0.75})
    first, second = (path for path in tmp_path.iterdir() if path.is_dir())
    first.rename(tmp_path / "first")
    second.rename(first)
    assert (cache.get(PARTS), cache.get(other)) == (None, None)


@pytest.mark.processes
@needs_fork
def test_a_process_killed_amid_a_write_leaves_no_cell(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    process = multiprocessing.get_context("fork").Process(target=die_amid_a_write, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert cache.get(PARTS) is None
    cache.put(PARTS, {"knn": 0.75})
    assert CellCache(tmp_path).get(PARTS) == {"knn": 0.75}
    assert not list(tmp_path.glob(".*.part"))


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "cells"):
        with pytest.raises(
            UserError, match=r"cannot keep finished cells in .*file.*: make room or make it writable, or choose another"
        ):
            CellCache(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot keep finished cells in"):
        CellCache(tmp_path)


def test_a_folder_lost_meanwhile_is_one_sentence(tmp_path: Path) -> None:
    cache = CellCache(tmp_path / "cells")
    (tmp_path / "cells").rmdir()
    (tmp_path / "cells").touch()
    with pytest.raises(UserError, match="cannot keep finished cells in"):
        cache.put(PARTS, {"knn": 0.5})


def test_cells_are_kept_beside_the_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pinoise.files import cache_folder

    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    assert default_cache_folder() == tmp_path / "cells"
    monkeypatch.delenv("PINOISE_CACHE")
    assert default_cache_folder() == cache_folder() / "cells"
