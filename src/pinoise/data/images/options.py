"""What a user may choose about image files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard, get_args

from pinoise.errors import UserError, unknown_choice

Color = Literal["auto", "gray", "rgb"]
"""Channels: three if any image has colour (``auto``), always none, or always three."""

Corrupt = Literal["refuse", "skip"]
"""What happens to a file that cannot be decoded."""

ImageSize = int | tuple[int, int]
"""Height and width, or one number for both."""

LARGEST = 16384  # pixels on a side
IMAGE_SIZE = f"it must be height and width, or one number for both, from 1 to {LARGEST}"


@dataclass(frozen=True)
class ImageOptions:
    """How image files become arrays; ``size`` is the height and width they are brought to, None to leave them as is.

    >>> ImageOptions.checked(size=64).size
    (64, 64)
    """

    size: tuple[int, int] | None = None
    color: Color = "auto"
    corrupt: Corrupt = "refuse"

    @classmethod
    def checked(
        cls, *, size: ImageSize | None = None, color: Color = "auto", corrupt: Corrupt = "refuse"
    ) -> ImageOptions:
        """Return options as a user gave them, or say what is allowed."""
        if color not in get_args(Color):
            raise unknown_choice("color", color, get_args(Color))
        if corrupt not in get_args(Corrupt):
            raise unknown_choice("choice for corrupt images", corrupt, get_args(Corrupt))
        return cls(_height_and_width(size), color, corrupt)


def _height_and_width(size: ImageSize | None) -> tuple[int, int] | None:
    if size is None:
        return None
    if not is_image_size(size):
        raise UserError(f"size is {size!r}: {IMAGE_SIZE}.")
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def is_image_size(value: object) -> TypeGuard[ImageSize]:
    """Whether this is one or two sides in the allowed range.

    >>> is_image_size(64), is_image_size((48, 64)), is_image_size(0), is_image_size("64")
    (True, True, False, False)
    """
    sides = tuple(value) if isinstance(value, tuple | list) else (value, value)
    return len(sides) == 2 and all(
        isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= LARGEST for side in sides
    )


def refuse_image_options(size: ImageSize | None, color: Color, corrupt: Corrupt, cache: object, *, where: str) -> None:
    """Raise an error for options that only a folder of images can follow."""
    given = {
        "size": size is not None,
        "color": color != "auto",
        "corrupt": corrupt != "refuse",
        "cache": cache is not None,
    }
    chosen = next((name for name, is_given in given.items() if is_given), None)
    if chosen is not None:
        raise UserError(f"{where} is not a folder of images, so {chosen} cannot apply: leave it out.")
