from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.experiments.cache import CellCache, cell_key, default_cache_folder

PARTS = {"data": "wine", "settings": {"epochs": 20, "views": ["σ", None]}, "rate": 0.1, "method": "scarf"}
KEY = cell_key(PARTS)
LONG = 20_000  # values, so that a write takes a while

needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="forks its writers")


def write_again_and_again(folder: Path, writer: int, ready: Event, rounds: int) -> None:
    cache = CellCache(folder)
    for _ in range(rounds):
        cache.put(KEY, {"few": [writer] * LONG}, parts=PARTS)
        ready.set()


def die_amid_a_write(folder: Path) -> None:
    def half(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text.encode()[: len(text) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        CellCache(folder).put(KEY, {"knn": 0.25}, parts=PARTS)


def test_a_key_is_the_checksum_of_sorted_json() -> None:
    text = '{"a":[1,2.0,true,null],"b":{"c":"\\u03c3"}}'
    assert cell_key({"b": {"c": "σ"}, "a": (1, 2.0, True, None)}) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("other", [{"a": 1.0}, {"a": True}, {"a": "1"}, {"a": None}, {"a": [1]}, {"b": 1}, {}])
def test_other_parts_have_another_key(other: dict[str, Any]) -> None:
    assert cell_key(other) != cell_key({"a": 1})


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), np.float32(1), np.int64(1), np.zeros(2), {1: 2}, {1, 2}, b"x", Path("x")]
)
def test_what_json_does_not_have_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        cell_key({"deep": [{"a": value}]})
    with pytest.raises(TypeError):
        CellCache(tmp_path).put(KEY, {"a": value}, parts=PARTS)
    assert list(tmp_path.iterdir()) == []


def test_a_cell_is_found_by_another_cache_of_the_same_folder(tmp_path: Path) -> None:
    value = {"knn": 1 / 3, "draws": (0.1, 1e-300), "flags": ["shrink"], "seconds": 12, "note": "σ \udcff"}
    folder = tmp_path / "not" / "there"
    assert CellCache(folder).get(KEY) is None
    CellCache(folder).put(KEY, value, parts=PARTS)
    assert CellCache(folder).get(KEY) == {**value, "draws": [0.1, 1e-300]}
    assert CellCache(folder).get(cell_key({**PARTS, "rate": 0.2})) is None


def test_the_file_of_a_cell_says_what_it_is_and_nothing_else_is_left(tmp_path: Path) -> None:
    CellCache(tmp_path).put(KEY, {"knn": 0.5}, parts=PARTS)
    (path,) = tmp_path.iterdir()
    cell = json.loads(path.read_text(encoding="utf-8"))
    assert (path.name, cell["parts"], cell["value"]) == (f"{KEY}.json", PARTS, {"knn": 0.5})


def test_a_later_value_replaces_an_earlier_one(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    cache.put(KEY, {"knn": 0.5}, parts=PARTS)
    cache.put(KEY, {"knn": 0.75}, parts=PARTS)
    assert cache.get(KEY) == {"knn": 0.75}


def test_a_key_of_other_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="was not made from the parts"):
        CellCache(tmp_path).put(KEY, {"knn": 0.5}, parts={**PARTS, "rate": 0.2})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"knn": 0.5', '"knn": 0.6'),
        ('"epochs": 20', '"epochs": 21'),
        ("}\n", ""),
        ('"value"', '"values"'),
        ("{", "\0{"),
    ],
)
def test_a_damaged_file_counts_as_absent_and_can_be_written_again(tmp_path: Path, old: str, new: str) -> None:
    cache = CellCache(tmp_path)
    cache.put(KEY, {"knn": 0.5}, parts=PARTS)
    path = tmp_path / f"{KEY}.json"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert cache.get(KEY) is None
    cache.put(KEY, {"knn": 0.5}, parts=PARTS)
    assert cache.get(KEY) == {"knn": 0.5}


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'"text"', b"\xff\xfe", b"{}", b"[" * 100_000])
def test_a_foreign_file_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{KEY}.json").write_bytes(content)
    assert CellCache(tmp_path).get(KEY) is None


def test_the_file_of_another_cell_under_this_name_counts_as_absent(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    cache.put(KEY, {"knn": 0.5}, parts=PARTS)
    other = cell_key({**PARTS, "rate": 0.2})
    (tmp_path / f"{KEY}.json").rename(tmp_path / f"{other}.json")
    assert (cache.get(KEY), cache.get(other)) == (None, None)


@needs_fork
def test_two_processes_may_write_the_same_cell_while_a_third_reads_it(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    cache, ready = CellCache(tmp_path), fork.Event()
    writers = [fork.Process(target=write_again_and_again, args=(tmp_path, n, ready, 40)) for n in (1, 2)]
    for writer in writers:
        writer.start()
    assert ready.wait(60)
    whole = [{"few": [writer] * LONG} for writer in (1, 2)]
    reads = 0
    while reads == 0 or any(writer.is_alive() for writer in writers):
        assert cache.get(KEY) in whole
        reads += 1
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEY}.json"]


@needs_fork
def test_a_process_killed_amid_a_write_leaves_the_cell_that_was_there(tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    for before in (None, {"knn": 0.5}):
        if before is not None:
            cache.put(KEY, before, parts=PARTS)
        process = multiprocessing.get_context("fork").Process(target=die_amid_a_write, args=(tmp_path,))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        assert cache.get(KEY) == before
    CellCache(tmp_path).put(KEY, {"knn": 0.75}, parts=PARTS)
    assert cache.get(KEY) == {"knn": 0.75}


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
    with pytest.raises(UserError, match="cannot keep finished cells in"):
        cache.put(KEY, {"knn": 0.5}, parts=PARTS)


def test_cells_are_kept_beside_the_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pinoise.files import cache_folder

    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    assert default_cache_folder() == tmp_path / "cells"
    monkeypatch.delenv("PINOISE_CACHE")
    assert default_cache_folder() == cache_folder() / "cells"
