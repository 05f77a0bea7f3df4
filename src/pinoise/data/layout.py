"""How images are stored in an array: files have channels last or none, networks have channels first."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError

ImageLayout = Literal["as-is", "gray", "channels-last", "channels-first"]
LAYOUTS: tuple[ImageLayout, ...] = get_args(ImageLayout)
AS_IS: ImageLayout = "as-is"

_USUAL_CHANNELS = (1, 3, 4)


def image_layout(shape: tuple[int, ...]) -> ImageLayout:
    """Return the layout that the shape of one sample means; of three axes the last is that of channels, unless only
    the first has 1, 3 or 4 entries.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((16, 16, 12))
    ('gray', 'channels-last', 'channels-first', 'channels-last')
    """
    if len(shape) == 2:
        return "gray"
    if len(shape) != 3:
        raise UserError(
            f"samples have the shape {shape}: images are (height, width), (height, width, channels) or "
            "(channels, height, width)."
        )
    first = shape[0] in _USUAL_CHANNELS and shape[2] not in _USUAL_CHANNELS
    return "channels-first" if first else "channels-last"


def to_image_layout(x: npt.NDArray[Any], layout: ImageLayout) -> npt.NDArray[Any]:
    """Return a view of samples (n, *shape) with channels first, (n, C, H, W); ``as-is`` changes nothing.

    >>> to_image_layout(np.zeros((5, 8, 6, 3)), "channels-last").shape
    (5, 3, 8, 6)
    >>> to_image_layout(np.zeros((5, 8, 6)), "gray").shape
    (5, 1, 8, 6)
    """
    if layout == "gray":
        return x[:, None]
    return np.moveaxis(x, -1, 1) if layout == "channels-last" else x


def undo_image_layout(x: npt.NDArray[Any], layout: ImageLayout) -> npt.NDArray[Any]:
    """Return a view of samples (n, C, H, W) in the layout of the file.

    >>> undo_image_layout(np.zeros((5, 3, 8, 6)), "channels-last").shape
    (5, 8, 6, 3)
    """
    if layout == "gray":
        return x[:, 0]
    return np.moveaxis(x, 1, -1) if layout == "channels-last" else x
