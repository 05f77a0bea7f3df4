"""Image files as an array that is decoded when it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.images.decoding import decode, in_threads
from pinoise.data.lazy import LazyArray


class ImageFiles(LazyArray):
    """A read-only array uint8 of shape (n, height, width) or (n, height, width, 3) whose rows are files.

    Indexing decodes, in threads, and gives an ordinary array; ``take`` chooses files and decodes nothing. Objects are
    small and can be pickled.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         Image.new("L", (5, 4), color=number).save(Path(folder, f"{number}.png"))
    ...     images = ImageFiles(Path(folder), ["0.png", "1.png", "2.png"], shape=(4, 5))
    ...     images.shape, images[np.array([2, 0])].shape, images.take(np.array([2, 0]))[0].max()
    ((3, 4, 5), (2, 4, 5), np.uint8(2))
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, folder: Path, names: Sequence[str], *, shape: tuple[int, ...], resize: bool = False) -> None:
        """Describe the array.

        Args:
            folder: where the files are.
            names: their paths in the folder, in the order of the rows.
            shape: of one image: height and width, and 3 if it has colour.
            resize: whether files of another size are scaled and cropped, or an error.
        """
        super().__init__(shape)
        self.folder = folder
        self.names = tuple(names)
        self.resize = resize

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"ImageFiles({self.folder}, shape={self.shape})"

    def take(self, rows: npt.NDArray[Any]) -> ImageFiles:
        """Return the files of these rows, in the given order, not decoded."""
        chosen = [self.names[row] for row in np.arange(len(self))[rows].tolist()]
        return ImageFiles(self.folder, chosen, shape=self._sample_shape, resize=self.resize)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        images: npt.NDArray[np.uint8] = np.empty((len(numbers), *self._sample_shape), dtype=np.uint8)

        def fill(row: int) -> None:
            path = self.folder / self.names[numbers[row]]
            images[row] = decode(path, shape=self._sample_shape, resize=self.resize)

        for _ in in_threads(fill, range(len(numbers))):
            pass
        return images
