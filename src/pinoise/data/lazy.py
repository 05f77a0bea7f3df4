"""Arrays whose rows stay where they are, in files, until they are indexed."""

from __future__ import annotations

import hashlib
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

_NEARBY = 4  # rows from one to the next that the disk is told to read as one piece
_SPARSEST = 2  # rows from one to the next, on average, that are still read in one go
_MOST_BYTES = 1 << 30  # in one call of the system, which takes less than 2 GiB on some


def state_of(file: Path | int) -> tuple[int, int]:
    """Return the size of a file and the time of its last change, from which a change is known."""
    found = os.fstat(file) if isinstance(file, int) else file.stat()
    return found.st_size, found.st_mtime_ns


def has_changed(path: Path) -> UserError:
    """Return the error for a file that somebody wrote to while it was used."""
    return UserError(
        f"{path} has changed while it was used: restore it, write to no file that is in use, and start again; training "
        "goes on with --resume."
    )


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

    def expect(self, numbers: npt.NDArray[np.int64]) -> None:  # noqa: B027
        """Let the disk read rows that will be needed soon, where that is possible; their numbers are sorted."""

    @abstractmethod
    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the samples (m, *shape) of these rows."""

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Read the rows that NumPy would choose; indices after the first apply to the samples."""
        if isinstance(rows, tuple):
            first, *inside = rows
            samples = self[first]
            axes = samples.ndim - len(self._sample_shape)
            return np.asarray(samples[(*(slice(None),) * axes, *inside)])
        numbers = row_numbers(rows, len(self))
        return self._read(numbers.ravel()).reshape(*numbers.shape, *self._sample_shape)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Read all rows into memory."""
        if copy is False:
            raise ValueError("rows in files cannot be shared: they are read into a new array.")
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)


def row_numbers(rows: Any, total: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the rows that NumPy would choose of so many, without listing all of them.

    >>> row_numbers(slice(-2, None), 5).tolist(), row_numbers(np.array([-1, 0]), 5).tolist(), row_numbers(3, 5).tolist()
    ([3, 4], [4, 0], 3)
    """
    if isinstance(rows, slice):
        return np.arange(*rows.indices(total))
    if not isinstance(rows, np.ndarray | int | np.integer) or np.asarray(rows).dtype.kind != "i":
        return np.asarray(np.arange(total)[rows])
    numbers = np.asarray(rows, dtype=np.int64)
    if numbers.size and not (-total <= numbers.min() and numbers.max() < total):
        raise IndexError(f"a row is out of range for {total} rows")
    return np.where(numbers < 0, numbers + total, numbers)


class FileRows(LazyArray):
    """An array in a file, of which the rows that are indexed are read.

    It is not mapped: reading a mapped file that somebody has cut off ends the process, and here is one sentence. So is
    a file that somebody writes to. One that replaces it under its name is not read.

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
        self._state = state_of(self._stream.fileno())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_stream", "_turn", "_state")}

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
        _, *sample = self._stored
        if _is_dense(numbers):  # reading what lies between costs less than another call
            return np.asarray(self._read(np.arange(numbers[0], numbers[-1] + 1))[numbers - numbers[0]])
        batch = np.empty((len(numbers), *sample), self.dtype)
        width = prod(sample) * self.dtype.itemsize
        content: memoryview = batch.reshape(-1).view(np.uint8).data
        # Neighbouring rows are read in one go.
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        positions = (self.offset + numbers[starts] * width).tolist()
        bounds = [*(starts * width).tolist(), len(content)]
        for (start, stop), position in zip(pairwise(bounds), positions, strict=True):
            self._fill(content[start:stop], position)
        if state_of(self._stream.fileno()) != self._state:
            raise has_changed(self.path)
        return batch if self._axes is None else batch.transpose(self._axes)

    def expect(self, numbers: npt.NDArray[np.int64]) -> None:
        """Let the disk read rows that will be needed soon, where the system offers it; their numbers are sorted."""
        if not hasattr(os, "posix_fadvise"):
            return
        width = prod(self._stored[1:]) * self.dtype.itemsize
        starts = np.flatnonzero(np.diff(numbers, prepend=-2 - _NEARBY) > _NEARBY)
        ends = np.append(starts[1:], len(numbers))[: len(starts)] - 1
        for first, last in zip(numbers[starts].tolist(), numbers[ends].tolist(), strict=True):
            os.posix_fadvise(
                self._stream.fileno(), self.offset + first * width, (last + 1 - first) * width, os.POSIX_FADV_WILLNEED
            )

    def _fill(self, buffer: memoryview, position: int) -> None:
        try:
            while (got := self._read_at(buffer, position)) < len(buffer):
                if got == 0:
                    raise has_changed(self.path)
                buffer, position = buffer[got:], position + got
        except OSError as error:
            raise cannot_read(self.path, error) from error

    def _read_at(self, buffer: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._stream.fileno(), [buffer[:_MOST_BYTES]], position)
        with self._turn:
            self._stream.seek(position, io.SEEK_SET)
            return self._stream.readinto(buffer)


def _is_dense(numbers: npt.NDArray[np.int64]) -> bool:
    """Whether rows come in order and are most, but not all, of those between the first and the last."""
    if len(numbers) < 2 or not len(numbers) <= numbers[-1] - numbers[0] < _SPARSEST * len(numbers):
        return False
    return bool((np.diff(numbers) > 0).all())


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

    def expect(self, numbers: npt.NDArray[np.int64]) -> None:
        """Let the disk read rows that will be needed soon."""
        self._table.expect(numbers)

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
        self._rows = row_numbers(rows, len(mapped))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"MappedRows(shape={self.shape}, dtype={self.dtype})"

    def take(self, rows: npt.NDArray[Any]) -> MappedRows:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self._mapped, self._rows[rows])

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.asarray(self._mapped[self._rows[numbers]])


_TOGETHER = 256  # rows of which it is known how many are chosen before them
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)  # in every byte


class Choice:
    """The numbers of chosen rows, in order, in one bit for each row that could be chosen.

    >>> choice = Choice(np.array([True, False, False, True, True]))
    >>> len(choice), choice[np.array([2, 0])].tolist(), choice[:2].tolist()
    (3, [4, 0], [0, 3])
    """

    def __init__(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Choose the rows where ``chosen`` is true."""
        size = _TOGETHER // 8
        packed = np.packbits(chosen)
        self._bits = np.pad(packed, (0, -len(packed) % size)).reshape(-1, size)  # (blocks, bytes)
        counts = _ONES[self._bits].sum(axis=1)
        self._before = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, places: Any) -> npt.NDArray[np.int64]:
        places = row_numbers(places, len(self))
        blocks = np.searchsorted(self._before, places, side="right") - 1
        if len(places) > _TOGETHER and (np.diff(places) == 1).all():  # all in a row
            first, last = int(blocks[0]), int(blocks[-1])
            found = np.flatnonzero(np.unpackbits(self._bits[first : last + 1]))
            start = int(places[0] - self._before[first])
            return np.asarray(found[start : start + len(places)] + first * _TOGETHER, dtype=np.int64)
        inside = (places - self._before[blocks])[:, None]
        counts = np.cumsum(np.unpackbits(self._bits[blocks], axis=1), axis=1, dtype=np.uint16)
        return np.asarray(blocks * _TOGETHER + (counts > inside).argmax(axis=1), dtype=np.int64)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """List all numbers."""
        return self[:].astype(np.int64 if dtype is None else dtype, copy=False)

    def checksum(self) -> bytes:
        """Return a checksum of which rows are chosen."""
        return hashlib.sha256(self._bits.data).digest()


class ChosenRows(LazyArray):
    """Rows of a very long array in a file that are chosen by a bit each.

    >>> rows = ChosenRows(MappedRows(np.arange(12).reshape(4, 3), np.arange(4)), Choice(np.array([0, 1, 0, 1], bool)))
    >>> rows.shape, rows[1].tolist()
    ((2, 3), [9, 10, 11])
    """

    def __init__(self, array: LazyArray, choice: Choice) -> None:
        """Choose rows of ``array``."""
        super().__init__(array.shape[1:])
        self.dtype = array.dtype
        self._array, self._choice = array, choice

    def __len__(self) -> int:
        return len(self._choice)

    def take(self, rows: npt.NDArray[Any]) -> MappedRows:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self, rows)

    def file_checksums(self) -> Iterator[bytes] | None:
        """Yield what stands for all rows of the array, if there is such, and which of them are chosen."""
        whole = self._array.file_checksums()
        return None if whole is None else iter([*whole, self._choice.checksum()])

    def expect(self, numbers: npt.NDArray[np.int64]) -> None:
        """Let the disk read rows that will be needed soon."""
        self._array.expect(self._choice[numbers])

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return self._array[self._choice[numbers]]


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
        batch = np.empty((len(numbers), *self._sample_shape), self.dtype)
        for array, (start, stop) in zip(self._arrays, pairwise(self._starts), strict=True):
            here = (start <= numbers) & (numbers < stop)
            if here.any():
                batch[here] = array[numbers[here] - start]
        return batch
