"""Rows of fixed width in a file: each feature in the smallest type that loses nothing, a category as one code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pinoise.data.dataset import Spans
from pinoise.data.lazy import FileRows, LazyArray, MappedRows

Floats = npt.NDArray[np.float64]

EXACT = ("u1", "<i2", "<f2", "<f4")
"""The types that a feature may have if all its values are the same in them, the smallest first."""

_ROUNDING = 1e-6  # of a feature's range that float32 may cost; otherwise the feature is in double precision
_PRECISION = 2.0**-24  # of float32, relative to a value


class Field(NamedTuple):
    """Features that share a type in a record; those of a category share one code: 0 for none, else 1 + its number."""

    dtype: str
    features: tuple[int, ...]
    is_code: bool = False

    @property
    def width(self) -> int:
        """The bytes of the field in a record."""
        return np.dtype(self.dtype).itemsize * (1 if self.is_code else len(self.features))


class Layout(NamedTuple):
    """How the features of a row are laid out in a record.

    >>> layout = Layout((Field("u1", (0, 1, 2), is_code=True), Field("<f4", (3,))))
    >>> rows = np.array([[0.0, 1.0, 0.0, 2.5], [0.0, 0.0, 0.0, -1.0]])
    >>> records = layout.pack(rows)
    >>> records.shape, np.array_equal(layout.unpack(records), rows)
    ((2, 5), True)
    """

    fields: tuple[Field, ...]

    @property
    def width(self) -> int:
        """The bytes of a record."""
        return sum(field.width for field in self.fields)

    @property
    def features(self) -> int:
        """The number of features."""
        return sum(len(field.features) for field in self.fields)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of unpacked rows."""
        return np.dtype(np.float64 if any(field.dtype == "<f8" for field in self.fields) else np.float32)

    def pack(self, rows: Floats) -> npt.NDArray[np.uint8]:
        """Return rows (m, features) as records (m, width)."""
        records = np.empty((len(rows), self.width), np.uint8)
        for field, place in self._places():
            values = rows[:, field.features]
            if field.is_code:
                filled = values.any(axis=1)
                values = np.where(filled, values.argmax(axis=1) + 1, 0)[:, None]
            records[:, place] = np.ascontiguousarray(values, dtype=field.dtype).view(np.uint8)
        return records

    def unpack(self, records: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return records (m, width) as rows (m, features)."""
        rows = np.zeros((len(records), self.features), self.dtype)
        for field, place in self._places():
            values = np.ascontiguousarray(records[:, place]).view(field.dtype)
            if field.is_code:
                codes = values[:, 0].astype(np.int64) - 1
                filled = np.flatnonzero(codes >= 0)
                rows[filled, np.asarray(field.features)[codes[filled]]] = 1
            elif field.features == tuple(range(self.features)):
                rows = values.astype(self.dtype)
            else:
                rows[:, field.features] = values
        return rows

    def _places(self) -> Iterator[tuple[Field, slice]]:
        start = 0
        for field in self.fields:
            yield field, slice(start, start + field.width)
            start += field.width


class Fitting:
    """Finds the layout of rows that come in pieces.

    >>> fitting = Fitting(4, codes=((0, 2),))
    >>> fitting.add(np.array([[0.0, 1.0, 7.0, 0.1], [1.0, 0.0, 200.0, 1.6e9]]))
    >>> [(field.dtype, field.features) for field in fitting.layout().fields]
    [('u1', (0, 1)), ('u1', (2,)), ('<f4', (3,))]
    """

    def __init__(self, features: int, *, codes: Spans = ()) -> None:
        """Fit rows of so many features, of which ``codes`` are the spans of categories."""
        self._codes = codes
        self._fits = {dtype: np.ones(features, np.bool_) for dtype in EXACT}
        self._low, self._high = np.full(features, np.inf), np.full(features, -np.inf)
        for start, stop in codes:  # they need no test
            for fits in self._fits.values():
                fits[start:stop] = False

    def add(self, rows: Floats) -> None:
        """Take the next rows."""
        for dtype, fits in self._fits.items():
            tested = np.flatnonzero(fits)
            if len(tested):
                values = rows if len(tested) == rows.shape[1] else rows[:, tested]
                with np.errstate(all="ignore"):
                    fits[tested] = (values.astype(dtype) == values).all(axis=0)
        self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))

    def layout(self) -> Layout:
        """Return the smallest layout that loses nothing, but for digits of float64 that do not matter."""
        largest = np.maximum(np.abs(self._low), np.abs(self._high))
        single = _PRECISION * largest <= _ROUNDING * (self._high - self._low)
        single |= self._fits["<f4"]
        chosen = np.where(single, EXACT.index("<f4"), len(EXACT))
        for place in reversed(range(len(EXACT))):
            chosen = np.where(self._fits[EXACT[place]], place, chosen)
        coded = [Field(_code_type(stop - start), tuple(range(start, stop)), True) for start, stop in self._codes]
        for start, stop in self._codes:
            chosen[start:stop] = -1
        plain = [
            Field(dtype, tuple(np.flatnonzero(chosen == place).tolist())) for place, dtype in enumerate((*EXACT, "<f8"))
        ]
        return Layout((*coded, *(field for field in plain if field.features)))


def _code_type(categories: int) -> str:
    """Return the smallest type for the codes of so many categories, from 0 for none.

    >>> _code_type(255), _code_type(256), _code_type(65_536)
    ('u1', '<u2', '<u4')
    """
    return next(dtype for dtype in ("u1", "<u2", "<u4") if categories <= np.iinfo(dtype).max)


def single_precision(features: int) -> Layout:
    """Return the layout of rows that are all in single precision."""
    return Layout((Field("<f4", tuple(range(features))),))


class Records(LazyArray):
    """Rows of features in a file of records, read when they are indexed."""

    def __init__(self, file: FileRows, layout: Layout, *, checksum: str) -> None:
        """Read records (n, width) of bytes; ``checksum`` is the SHA-256 of the file, which was verified."""
        super().__init__((layout.features,))
        self.dtype = layout.dtype
        self._file, self._layout, self._checksum = file, layout, checksum

    def __len__(self) -> int:
        return len(self._file)

    def take(self, rows: npt.NDArray[Any]) -> LazyArray:
        """Return these rows in the given order, without reading them."""
        return MappedRows(self, rows)

    def file_checksums(self) -> Iterator[bytes]:
        """Yield the checksum of the file, which stands for all rows."""
        yield bytes.fromhex(self._checksum)
        yield repr(self._layout).encode()

    def expect(self, numbers: npt.NDArray[np.int64]) -> None:
        """Let the disk read rows that will be needed soon."""
        self._file.expect(numbers)

    def _read(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return self._layout.unpack(self._file[numbers])


def smallest(numbers: npt.NDArray[Any], dtypes: Sequence[str] = ("u1", "i2", "i4", "i8")) -> npt.NDArray[Any]:
    """Return whole numbers in the smallest of some types that holds them.

    >>> smallest(np.array([0, 300])).dtype
    dtype('int16')
    """
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return numbers.astype(next(d for d in dtypes if np.iinfo(d).min <= low and high <= np.iinfo(d).max))
