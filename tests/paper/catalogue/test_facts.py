"""Facts of data sets are checked when the file of facts is read."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from pinoise.paper.catalogue import DataFile, facts

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
    assert files("pinoise.paper.catalogue").joinpath("sets.toml").is_file()


def test_a_table_becomes_an_entry_with_its_files() -> None:
    found = facts._entry(GOOD)
    assert (found.shape, found.rows, found.combined, found.convert) == ((2, 3), (4, 0), None, False)
    assert found.files == (DataFile("toy.npz", sha256="0" * 64, instead=(DataFile("toy", folder=True),)),)


@pytest.mark.parametrize(("change", "message"), [({"lisence": "MIT"}, "lisence"), ({"files": [{"nam": "a"}]}, "nam")])
def test_an_unknown_fact_is_an_error_that_names_it(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        facts._entry(GOOD | change)


def test_a_missing_fact_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="licence"):
        facts._entry({key: value for key, value in GOOD.items() if key != "licence"})
