"""How images are stored in an array: files have channels last or none, networks have channels first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from pinoise.data.dataset import Samples

ImageLayout = Literal["as-is", "gray", "channels-last", "channels-first"]
LAYOUTS: tuple[ImageLayout, ...] = get_args(ImageLayout)
AS_IS: ImageLayout = "as-is"
A = TypeVar("A", npt.NDArray[Any], "Tensor")

_USUAL_CHANNELS = (1, 3, 4)
_SMALLEST_SIDE = 8  # pixels of what counts as an image
_LOOKED_AT = 16  # samples


def image_layout(shape: tuple[int, ...]) -> ImageLayout:
    """Return the layout that the shape of one sample means; of three axes the last is that of channels, unless only
    the first has 1, 3 or 4 entries.

    >>> image_layout((28, 28)), image_layout((32, 32, 3)), image_layout((3, 32, 32)), image_layout((16, 16, 12))
    ('gray', 'channels-last', 'channels-first', 'channels-last')
    """
    if len(shape) == 2:
        return "gray"
    if len(shape) != 3:
        allowed = "(height, width), (height, width, channels) or (channels, height, width)"
        raise UserError(f"samples have the shape {shape}: images are {allowed}.")
    first = shape[0] in _USUAL_CHANNELS and shape[2] not in _USUAL_CHANNELS
    return "channels-first" if first else "channels-last"


def are_images(x: Samples) -> bool:
    """Whether samples are images, as far as their shape, their type and a few of their values tell.

    Samples of three axes are images if 1, 3 or 4 channels come last or first and no value is negative. Samples of two
    axes are gray images if they are bytes: other numbers may as well be windows of a recording.

    >>> are_images(np.zeros((2, 32, 32, 3))), are_images(np.zeros((2, 28, 28), np.uint8))
    (True, True)
    >>> are_images(np.zeros((2, 28, 28))), are_images(np.zeros((2, 128, 6)))
    (False, False)
    """
    shape = tuple(map(int, x.shape[1:]))
    if len(shape) == 3:
        usual = bool({shape[0], shape[2]} & set(_USUAL_CHANNELS)) and np.issubdtype(x.dtype, np.number)
    else:
        usual = len(shape) == 2 and x.dtype == np.uint8
    return usual and min(_channels_first(shape)[1:]) >= _SMALLEST_SIDE and not _has_negatives(x)


def have_colours(x: Samples) -> bool:
    """Whether the colours of images can be changed: they have 1 or 3 channels, and no negative value.

    >>> have_colours(np.zeros((2, 8, 8, 3))), have_colours(np.zeros((2, 8, 8, 4))), have_colours(-np.ones((2, 8, 8)))
    (True, False, False)
    """
    return _channels_first(tuple(map(int, x.shape[1:])))[0] in (1, 3) and not _has_negatives(x)


def _has_negatives(x: Samples) -> bool:
    """Whether one of a few samples has a negative value."""
    if x.dtype.kind not in "if":
        return False
    some = np.unique(np.linspace(0, x.shape[0] - 1, _LOOKED_AT).astype(np.int64))
    return any(np.asarray(x[row : row + 1]).min() < 0 for row in some.tolist())


def _channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of channels, the height and the width of images of this shape."""
    return to_image_layout(np.empty((0, *shape)), image_layout(shape)).shape[1:]


def to_image_layout(x: A, layout: ImageLayout) -> A:
    """Return a view of samples (n, *shape) with channels first, (n, C, H, W); ``as-is`` changes nothing.

    >>> to_image_layout(np.zeros((5, 8, 6, 3)), "channels-last").shape
    (5, 3, 8, 6)
    >>> to_image_layout(np.zeros((5, 8, 6)), "gray").shape
    (5, 1, 8, 6)
    """
    if layout == "gray":
        return x[:, None]
    return x.swapaxes(1, 3).swapaxes(2, 3) if layout == "channels-last" else x


def undo_image_layout(x: A, layout: ImageLayout) -> A:
    """Return a view of samples (n, C, H, W) in the layout of the file.

    >>> undo_image_layout(np.zeros((5, 3, 8, 6)), "channels-last").shape
    (5, 8, 6, 3)
    """
    if layout == "gray":
        return x[:, 0]
    return x.swapaxes(2, 3).swapaxes(1, 3) if layout == "channels-last" else x
