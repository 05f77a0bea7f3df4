from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.experiments.cache import CellCache, cell_key, default_cache_folder

PARTS = {"data": "wine", "settings": {"epochs": 20, "views": ["σ", None]}, "rate": 0.1, "method": "scarf"}


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


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "cells"):
        with pytest.raises(UserError, match=r"finished cells cannot be written to .*file is a file"):
            CellCache(folder)


def test_cells_are_kept_beside_the_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pinoise.files import cache_folder

    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    assert default_cache_folder() == tmp_path / "cells"
    monkeypatch.delenv("PINOISE_CACHE")
    assert default_cache_folder() == cache_folder() / "cells"
