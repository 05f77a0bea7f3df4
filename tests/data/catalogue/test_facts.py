"""Facts of data sets are checked when the file of facts is read."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from pinoise.data.catalogue import DataFile, facts

GOOD: dict[str, Any] = {
    "name": "toy",
    "title": "A toy",
    "shape": [2, 3],
    "classes": 2,
    "rows": [4, 0],
    "split": "none",
    "licence": "MIT",
    "source": "made by hand",
    "reader": "npz",
    "files": [{"name": "toy.npz", "sha256": "0" * 64, "instead": [{"name": "toy", "folder": True}]}],
}


def test_the_file_of_facts_is_part_of_the_package() -> None:
    assert files("pinoise.data.catalogue").joinpath("sets.toml").is_file()


def test_a_table_becomes_an_entry_with_its_files() -> None:
    found = facts._entry(GOOD)
    assert (found.shape, found.rows, found.combined, found.convert) == ((2, 3), (4, 0), None, False)
    assert found.files == (DataFile("toy.npz", sha256="0" * 64, instead=(DataFile("toy", folder=True),)),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lisence": "MIT"}, "lisence"),
        ({"rows": [0, 1]}, r"'toy': shape \(2, 3\) or rows \(0, 1\) is wrong"),
        ({"rows": [1]}, r"rows \(1,\) is wrong"),
        ({"shape": []}, r"shape \(\)"),
        ({"title": ""}, "title, split, licence, source and reader are texts"),
        ({"class_names": ["a"]}, "1 names for 2 classes"),
        ({"files": [{"name": "a", "sha256": "abc"}]}, "'abc' is not a sha256"),
        ({"files": [{"nam": "a"}]}, "nam"),
    ],
)
def test_a_wrong_fact_is_an_error_that_names_it(change: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        facts._entry(GOOD | change)


def test_a_missing_fact_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="licence"):
        facts._entry({key: value for key, value in GOOD.items() if key != "licence"})
