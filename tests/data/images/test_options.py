from __future__ import annotations

from typing import Any

import pytest

from pinoise.data.images.options import ImageOptions, refuse_image_options
from pinoise.errors import UserError


def test_one_number_is_height_and_width() -> None:
    assert ImageOptions.checked(size=32) == ImageOptions.checked(size=(32, 32))
    assert ImageOptions.checked(size=[48, 64]).size == (48, 64)  # type: ignore[arg-type]
    assert ImageOptions.checked().size is None


@pytest.mark.parametrize("size", [0, -3, (3,), (1, 2, 3), (0, 4), 20000, (2.5, 4), "ab"])
def test_other_sizes_are_refused(size: Any) -> None:
    with pytest.raises(UserError, match="it must be height and width, or one number for both, from 1 to 16384"):
        ImageOptions.checked(size=size)


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
