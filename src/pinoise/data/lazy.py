"""Arrays whose rows stay where they are, in files, until they are indexed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pinoise.data.formats.opened import has_changed, state_of
from pinoise.errors import cannot_read
from pinoise.files import open_regular

Array = npt.NDArray[Any]


class LazyArray(ABC):
    """A read-only array of samples: indexing reads rows into an ordinary array, ``take`` only chooses rows."""

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._total, *sample_shape = shape
        self._sample_shape, self.dtype = tuple(sample_shape), np.dtype(dtype)
        self._rows: npt.NDArray[np.integer] | None = None  # those that were chosen, None for all

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and the shape of one sample."""
        return (len(self), *self._sample_shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 1 + len(self._sample_shape)

    def __len__(self) -> int:
        return self._total if self._rows is None else len(self._rows)

    def take(self, rows: Any) -> Self:
        """Return these rows in the given order, without reading them."""
        chosen = object.__new__(type(self))
        chosen.__dict__.update(self.__dict__, _rows=self._stored(row_numbers(rows, len(self))))
        return chosen

    def _stored(self, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Return where rows stand among all that there are."""
        return numbers if self._rows is None else np.asarray(self._rows[numbers])

    def file_checksums(self) -> Iterator[bytes] | None:
        """Return a checksum of the file of every row where each row is a file, so that none need be decoded."""
        return None

    @abstractmethod
    def _read(self, numbers: npt.NDArray[np.integer]) -> Array:
        """Return the samples (m, *shape) of these rows of all that there are."""

    def __getitem__(self, rows: Any) -> Array:
        """Read the rows that NumPy would choose."""
        numbers = row_numbers(rows, len(self))
        return self._read(self._stored(numbers.ravel())).reshape(*numbers.shape, *self._sample_shape)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Read all rows into memory."""
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)


def row_numbers(rows: Any, total: int) -> npt.NDArray[Any]:
    """Return the numbers of the rows that NumPy would choose of so many. Those that are listed keep their type.

    >>> row_numbers(slice(-2, None), 5).tolist(), row_numbers(np.array([-1, 0]), 5).tolist(), row_numbers(3, 5).tolist()
    ([3, 4], [4, 0], 3)
    """
    if isinstance(rows, slice):
        return np.arange(*rows.indices(total))
    numbers = np.asarray(rows)
    if numbers.dtype.kind != "i":
        return np.asarray(np.arange(total)[rows])
    lowest = numbers.min(initial=0)
    if lowest < -total or numbers.max(initial=-1) >= total:
        raise IndexError(f"a row is out of range for {total} rows")
    return numbers if lowest >= 0 else np.where(numbers < 0, numbers + total, numbers)


class FileRows(LazyArray):
    """An array in a file, of which the rows that are indexed are read.

    It is not mapped: reading a mapped file that somebody has cut off ends the process. Here it is an error of one
    sentence, as is a file that somebody writes to or replaces.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.bin")
    ...     _ = path.write_bytes(bytes(range(12)))
    ...     rows = FileRows(path, (4, 3), np.dtype(np.uint8))
    ...     rows[np.array([2, 0])].tolist()
    [[6, 7, 8], [0, 1, 2]]
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> None:
        """Describe the array.

        Args:
            path: the file.
            shape: of the array in the file, rows first.
            dtype: of its values.
            offset: where it begins, in bytes.
        """
        super().__init__(shape, dtype)
        self.path, self.offset = path, offset
        self._state = state_of(path)

    def _read(self, numbers: npt.NDArray[np.integer]) -> Array:
        batch = np.empty((len(numbers), *self._sample_shape), self.dtype)
        width = prod(self._sample_shape) * self.dtype.itemsize
        content: memoryview = batch.reshape(-1).view(np.uint8).data
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)  # neighbouring rows are read in one go
        bounds = [*(starts * width).tolist(), len(content)]
        try:
            with open_regular(self.path) as stream:
                for (start, stop), row in zip(pairwise(bounds), numbers[starts].tolist(), strict=True):
                    stream.seek(self.offset + row * width)
                    if stream.readinto(content[start:stop]) < stop - start:
                        raise has_changed(self.path)
        except OSError as error:
            raise cannot_read(self.path, error) from error
        if state_of(self.path) != self._state:
            raise has_changed(self.path)
        return batch


class MappedRows(LazyArray):
    """The rows of an array that is not in memory, each changed as it is read.

    >>> table = MappedRows(np.arange(12).reshape(4, 3))
    >>> rows = MappedRows(table.take(np.array([2, 0])), lambda some: some[:, 1:], sample_shape=(2,))
    >>> rows.shape, rows[0].tolist(), rows.take(np.array([1]))[:].tolist()
    ((2, 2), [7, 8], [[1, 2]])
    """

    def __init__(
        self,
        source: Array | LazyArray,
        change: Callable[[Array], Array] = np.asarray,
        *,
        sample_shape: tuple[int, ...] | None = None,
    ) -> None:
        """Describe the array.

        Args:
            source: the array.
            change: from some of its rows to the same number of rows.
            sample_shape: of a changed row; as in the source if None.
        """
        super().__init__((len(source), *(source.shape[1:] if sample_shape is None else sample_shape)), source.dtype)
        self._source, self._change = source, change

    def _read(self, numbers: npt.NDArray[np.integer]) -> Array:
        return self._change(self._source[numbers])
