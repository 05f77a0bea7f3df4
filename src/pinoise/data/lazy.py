"""Arrays whose rows stay where they are, in files, until they are indexed."""

from __future__ import annotations

import io
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.messages import cannot_read
from pinoise.errors import UserError
from pinoise.files import open_regular

_MOST_BYTES = 1 << 30  # in one call of the system, which takes less than 2 GiB on some


class LazyArray(ABC):
    """A read-only array of samples: indexing reads rows into an ordinary array, ``take`` only chooses rows."""

    dtype: np.dtype[Any]

    def __init__(self, sample_shape: tuple[int, ...]) -> None:
        self._sample_shape = sample_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and the shape of one sample."""
        return (len(self), *self._sample_shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 1 + len(self._sample_shape)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, rows: npt.NDArray[Any]) -> LazyArray:
        """Return these rows in the given order, without reading them."""

    def file_checksums(self) -> Iterator[bytes] | None:
        """Return a checksum of the file of every row where each row is a file, so that none need be decoded."""
        return None

    @abstractmethod
    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the samples (m, *shape) of these rows; negative numbers count from the end."""

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Read the rows that NumPy would choose; indices after the first apply to the samples."""
        if isinstance(rows, tuple):
            first, *inside = rows
            samples = self[first]
            axes = samples.ndim - len(self._sample_shape)
            return np.asarray(samples[(*(slice(None),) * axes, *inside)])
        is_batch = isinstance(rows, np.ndarray) and rows.dtype.kind == "i"
        numbers = rows if is_batch else np.asarray(np.arange(len(self))[rows])
        return self._read(numbers.ravel()).reshape(*numbers.shape, *self._sample_shape)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Read all rows into memory."""
        if copy is False:
            raise ValueError("rows in files cannot be shared: they are read into a new array.")
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)


class FileRows(LazyArray):
    """An array in a file, of which the rows that are indexed are read.

    It is not mapped: reading a mapped file that somebody has cut off ends the process, and here is one sentence.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.bin")
    ...     _ = path.write_bytes(bytes(range(12)))
    ...     rows = FileRows(path, (4, 3), np.dtype(np.uint8))
    ...     rows[np.array([2, 0])].tolist()
    [[6, 7, 8], [0, 1, 2]]
    """

    def __init__(
        self,
        path: Path,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        offset: int = 0,
        axes: tuple[int, ...] | None = None,
    ) -> None:
        """Describe the array.

        Args:
            path: the file.
            shape: of the array in the file, rows first.
            dtype: of its values.
            offset: where it begins, in bytes.
            axes: the order in which the axes of a batch are given, as in ``np.transpose``; as in the file if None.
        """
        super().__init__(shape[1:] if axes is None else tuple(shape[axis] for axis in axes[1:]))
        self.path, self.dtype, self.offset = path, dtype, offset
        self._stored, self._axes = shape, axes
        self._open()

    def _open(self) -> None:
        try:
            self._stream = open_regular(self.path)
        except OSError as error:
            raise cannot_read(self.path, error) from error
        self._turn = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_stream", "_turn")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return self._stored[0]

    def __repr__(self) -> str:
        return f"FileRows({self.path}, shape={self.shape}, dtype={self.dtype})"

    def take(self, rows: npt.NDArray[Any]) -> MappedRows:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self, rows)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        n, *sample = self._stored
        if len(numbers) and not (-n <= numbers.min() and numbers.max() < n):
            raise IndexError(f"a row is out of range for {n} rows")
        numbers = numbers % n if n else numbers
        batch = np.empty((len(numbers), *sample), self.dtype)
        width = prod(sample) * self.dtype.itemsize
        content: memoryview = batch.reshape(-1).view(np.uint8).data
        # Neighbouring rows are read in one go.
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        positions = (self.offset + numbers[starts] * width).tolist()
        bounds = [*(starts * width).tolist(), len(content)]
        for (start, stop), position in zip(pairwise(bounds), positions, strict=True):
            self._fill(content[start:stop], position)
        return batch if self._axes is None else batch.transpose(self._axes)

    def _fill(self, buffer: memoryview, position: int) -> None:
        try:
            while (got := self._read_at(buffer, position)) < len(buffer):
                if got == 0:
                    raise UserError(
                        f"{self.path} has become shorter while it was read: restore the file, and do not write to it "
                        "while it is used."
                    )
                buffer, position = buffer[got:], position + got
        except OSError as error:
            raise cannot_read(self.path, error) from error

    def _read_at(self, buffer: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._stream.fileno(), [buffer[:_MOST_BYTES]], position)
        with self._turn:
            self._stream.seek(position, io.SEEK_SET)
            return self._stream.readinto(buffer)


class SomeColumns(LazyArray):
    """Some columns of a table in a file.

    >>> rows = SomeColumns(MappedRows(np.arange(12).reshape(4, 3), np.arange(4)), slice(1, None))
    >>> rows.shape, rows[0].tolist()
    ((4, 2), [1, 2])
    """

    def __init__(self, table: LazyArray, columns: slice | npt.NDArray[np.int64]) -> None:
        """Choose columns of ``table``."""
        super().__init__(np.arange(table.shape[1])[columns].shape)
        self.dtype = table.dtype
        self._table, self._columns = table, columns

    def __len__(self) -> int:
        return len(self._table)

    def take(self, rows: npt.NDArray[Any]) -> SomeColumns:
        """Return these rows in the given order, without reading them."""
        return SomeColumns(self._table.take(rows), self._columns)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.asarray(self._table[numbers][:, self._columns])


class MappedRows(LazyArray):
    """Some rows of an array in a file, in any order.

    >>> rows = MappedRows(np.arange(12).reshape(4, 3), np.array([2, 0]))
    >>> rows.shape, rows[0].tolist(), rows.take(np.array([1]))[:].tolist()
    ((2, 3), [6, 7, 8], [[0, 1, 2]])
    """

    def __init__(self, mapped: npt.NDArray[Any] | LazyArray, rows: npt.NDArray[np.int64]) -> None:
        """Choose rows of ``mapped``."""
        super().__init__(mapped.shape[1:])
        self.dtype = mapped.dtype
        self._mapped = mapped
        self._rows = np.arange(len(mapped))[rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"MappedRows(shape={self.shape}, dtype={self.dtype})"

    def take(self, rows: npt.NDArray[Any]) -> MappedRows:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self._mapped, self._rows[rows])

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.asarray(self._mapped[self._rows[numbers]])


class JoinedRows(LazyArray):
    """The rows of several arrays, one array after another.

    >>> rows = JoinedRows([MappedRows(np.arange(6).reshape(3, 2), np.arange(3)), np.array([[9, 9]])])
    >>> rows.shape, rows[np.array([3, 0])].tolist(), rows.take(np.array([2, 3]))[:].tolist()
    ((4, 2), [[9, 9], [0, 1]], [[4, 5], [9, 9]])
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any] | LazyArray]) -> None:
        """Join arrays of samples of one shape and type."""
        super().__init__(arrays[0].shape[1:])
        self.dtype = arrays[0].dtype
        self._arrays = tuple(arrays)
        self._starts = np.cumsum([0, *map(len, arrays)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, rows: npt.NDArray[Any]) -> MappedRows:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self, rows)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        numbers = np.arange(len(self))[numbers]  # negative ones count from the end, and others are out of range
        batch = np.empty((len(numbers), *self._sample_shape), self.dtype)
        for array, (start, stop) in zip(self._arrays, pairwise(self._starts), strict=True):
            here = (start <= numbers) & (numbers < stop)
            if here.any():
                batch[here] = array[numbers[here] - start]
        return batch
