from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from pinoise.data.options import ReadOptions
from pinoise.errors import UserError
from pinoise.training.config import override, parse_assignment, parse_settings


def test_one_number_is_height_and_width() -> None:
    assert ReadOptions(size=32).height_and_width == ReadOptions(size=(32, 32)).height_and_width == (32, 32)
    assert ReadOptions(size=[48, 64]).size == (48, 64)  # type: ignore[arg-type]
    assert ReadOptions().height_and_width is None


@pytest.mark.parametrize("size", [1, 16384, (48, 64)])
def test_settings_take_the_sizes_that_images_take(size: Any) -> None:
    given = list(size) if isinstance(size, tuple) else size
    settings = parse_settings({"data": {"size": given}})
    assert settings.data.size == size
    ReadOptions(size=size)


def test_height_and_width_may_be_written_with_a_comma() -> None:
    assert parse_settings(override({}, [parse_assignment("data.size=32,48")])).data.size == (32, 48)


@pytest.mark.parametrize("size", [0, 16385, True, [3], [1, 2, 3], [0, 4], "ab", "32,x", "32,", ",", 2.5])
def test_settings_refuse_other_sizes_in_one_sentence(size: Any) -> None:
    sentence = re.escape(f"setting 'data.size' is {size!r}: it must be height and width, or one number for both")
    with pytest.raises(UserError, match=f"^{sentence}, from 1 to 16384.$"):
        parse_settings({"data": {"size": size}})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": (0, 4)}, "it must be height and width, or one number for both, from 1 to 16384"),
        ({"color": "grey"}, "unknown color 'grey': did you mean 'gray'"),
        ({"corrupt": "skipp"}, "unknown choice for corrupt images 'skipp': did you mean 'skip'"),
        ({"missing": "medain"}, "unknown policy for missing values 'medain': did you mean 'median'"),
        ({"rows": 1}, "rows is 1: learning by contrast needs at least 2"),
        ({"max_categories": 0}, "max_categories is 0: it must be at least 1"),
        ({"drop": "age"}, "drop is 'age': it must be a list of column names"),
        ({"categorical": [3]}, r"categorical is \[3\]: it must be a list of column names"),
    ],
)
def test_values_that_are_not_allowed_are_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ReadOptions(**given)


def test_values_are_normalised_and_cannot_change_later() -> None:
    options = ReadOptions(drop=["a"], categorical=["b"])  # type: ignore[arg-type]
    assert (options.drop, options.categorical) == (("a",), ("b",))
    assert hash(options) == hash(ReadOptions(drop=("a",), categorical=("b",)))
    with pytest.raises(FrozenInstanceError):
        options.rows = 3  # type: ignore[misc]


def test_pydantic_validates_the_options_and_refuses_unknown_ones() -> None:
    adapter = TypeAdapter(ReadOptions)
    given = {"label": "y", "size": [48, 64], "drop": ["a"]}
    assert adapter.validate_python(given) == ReadOptions(label="y", size=(48, 64), drop=("a",))
    with pytest.raises(ValidationError, match="lable"):
        adapter.validate_python({"lable": "y"})
    with pytest.raises(ValidationError, match="rows is 1: learning by contrast needs at least 2"):
        adapter.validate_python({"rows": 1})
