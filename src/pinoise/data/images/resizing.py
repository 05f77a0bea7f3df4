"""Arrays of pixels in another size, by the rule that a folder of images is decoded with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Part, Samples
from pinoise.data.images.decoding import describe, fitted, pillow
from pinoise.data.lazy import LazyArray
from pinoise.data.threads import in_threads
from pinoise.errors import UserError


class ResizedImages(LazyArray):
    """Images (n, h, w) or (n, h, w, c) of bytes that are brought to another size when they are indexed.

    >>> images = ResizedImages(np.zeros((2, 9, 6, 3), dtype=np.uint8), (4, 4))
    >>> images.shape, images[0].shape, images.take(np.array([1])).shape
    ((2, 4, 4, 3), (4, 4, 3), (1, 4, 4, 3))
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, images: npt.NDArray[Any] | LazyArray, size: tuple[int, int]) -> None:
        """Describe the array; ``size`` is height and width."""
        super().__init__((*size, *images.shape[3:]))
        self._images, self._size = images, size

    def __len__(self) -> int:
        return len(self._images)

    def take(self, rows: npt.NDArray[Any]) -> ResizedImages:
        """Return these rows in the given order, not yet resized."""
        chosen = self._images.take(rows) if isinstance(self._images, LazyArray) else self._images[rows]
        return ResizedImages(chosen, self._size)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        batch = np.asarray(self._images[numbers])
        resized: npt.NDArray[np.uint8] = np.empty((len(batch), *self._sample_shape), dtype=np.uint8)
        library = pillow()

        def fill(row: int) -> None:
            pixels = batch[row]
            image = library.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels))
            resized[row] = np.asarray(fitted(image, self._size)).reshape(self._sample_shape)

        for _ in in_threads(fill, range(len(batch))):
            pass
        return resized


def holds_images(x: Samples) -> bool:
    """Whether samples are bytes of gray or colour images.

    >>> holds_images(np.zeros((2, 8, 8), dtype=np.uint8)), holds_images(np.zeros((2, 128, 6)))
    (True, False)
    """
    return x.dtype == np.uint8 and tuple(x.shape[3:]) in ((), (1,), (3,)) and x.ndim in (3, 4)


def resized(data: Dataset, size: tuple[int, int]) -> Dataset:
    """Return a set of images in another size: scaled until the shorter side fits, and cropped about the centre.

    >>> data = Dataset("toy", train=Part(np.zeros((2, 8, 8), dtype=np.uint8)))
    >>> small = resized(data, (4, 4))
    >>> small.shape, small.notes
    ((4, 4), ('images were brought from 8 × 8 to 4 × 4 pixels',))
    """
    if not holds_images(data.train.x):
        raise UserError(
            f"{data.name} has samples of shape {data.shape}, which are no images, so size cannot apply: leave it out."
        )
    height, width = data.shape[:2]
    if (height, width) == size:
        return data
    parts = [None if part is None else _resized_part(part, size) for part in (data.train, data.test)]
    assert parts[0] is not None  # every data set has a training part
    note = f"images were brought from {describe((height, width))} to {describe(size)} pixels"
    return replace(data, train=parts[0], test=parts[1], notes=(*data.notes, note))


def _resized_part(part: Part, size: tuple[int, int]) -> Part:
    assert not isinstance(part.x, sp.csr_array)  # a sparse matrix holds no images
    images = ResizedImages(part.x, size)
    # What is in memory stays there, so that no image is resized twice.
    return replace(part, x=images[:] if type(part.x) is np.ndarray else images)
