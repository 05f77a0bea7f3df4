from __future__ import annotations

import re
from typing import Any

import pytest

from pinoise.data.images.options import ImageOptions, refuse_image_options
from pinoise.errors import UserError
from pinoise.training.config import parse_settings


def test_one_number_is_height_and_width() -> None:
    assert ImageOptions.checked(size=32) == ImageOptions.checked(size=(32, 32))
    assert ImageOptions.checked(size=[48, 64]).size == (48, 64)  # type: ignore[arg-type]
    assert ImageOptions.checked().size is None


@pytest.mark.parametrize("size", [0, -3, (3,), (1, 2, 3), (0, 4), 20000, (2.5, 4), "ab"])
def test_other_sizes_are_refused(size: Any) -> None:
    with pytest.raises(UserError, match="it must be height and width, or one number for both, from 1 to 16384"):
        ImageOptions.checked(size=size)


@pytest.mark.parametrize("size", [1, 16384, (48, 64)])
def test_settings_take_the_sizes_that_images_take(size: Any) -> None:
    given = list(size) if isinstance(size, tuple) else size
    settings = parse_settings({"data": {"size": given}})
    assert settings.data.size == size
    assert settings.model_dump(mode="json")["data"]["size"] == given
    ImageOptions.checked(size=size)


@pytest.mark.parametrize("size", [0, 16385, True, [3], [1, 2, 3], [0, 4], "ab", 2.5])
def test_settings_refuse_other_sizes_in_one_sentence(size: Any) -> None:
    sentence = re.escape(f"setting 'data.size' is {size!r}: it must be height and width, or one number for both")
    with pytest.raises(UserError, match=f"^{sentence}, from 1 to 16384.$"):
        parse_settings({"data": {"size": size}})


def test_unknown_choices_are_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown color 'grey': did you mean 'gray'"):
        ImageOptions.checked(color="grey")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="unknown choice for corrupt images 'skipp': did you mean 'skip'"):
        ImageOptions.checked(corrupt="skipp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "named"),
    [({"size": 3}, "size"), ({"color": "rgb"}, "color"), ({"corrupt": "skip"}, "corrupt"), ({"cache": "a"}, "cache")],
)
def test_options_of_images_are_refused_elsewhere(given: dict[str, Any], named: str) -> None:
    chosen: dict[str, Any] = {"size": None, "color": "auto", "corrupt": "refuse", "cache": None}
    refuse_image_options(**chosen, where="a.csv")
    with pytest.raises(UserError, match=rf"a\.csv is not a folder of images, so {named} cannot apply"):
        refuse_image_options(**(chosen | given), where="a.csv")
