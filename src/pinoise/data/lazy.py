"""Arrays whose rows stay where they are, in files, until they are indexed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt


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
    def take(self, rows: npt.NDArray[Any]) -> Self:
        """Return these rows in the given order, without reading them."""

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


class MappedRows(LazyArray):
    """Some rows of a mapped file, in any order.

    >>> rows = MappedRows(np.arange(12).reshape(4, 3), np.array([2, 0]))
    >>> rows.shape, rows[0].tolist(), rows.take(np.array([1]))[:].tolist()
    ((2, 3), [6, 7, 8], [[0, 1, 2]])
    """

    def __init__(self, mapped: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> None:
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
