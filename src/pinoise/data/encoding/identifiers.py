"""Columns of whole numbers that name rows rather than measure something."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

LEAST_ROWS = 50  # in a shorter table, numbers that all differ may well be measurements
_NAMED = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|key|index|row)$|[a-z](Id|ID)$|^(ID|Id)$", re.IGNORECASE)
_LONG = 10**13  # from 14 digits on, a whole number that never repeats is no count
_COMPARED = 1 << 22  # values that are compared with each other in one pass
_MIXING = np.uint64(0x9E3779B97F4A7C15)  # so that every part of the values has about as many
_MICROSECONDS = (9 * 10**14, 42 * 10**14)  # since 1970, from 1998 to 2103


class RowNames:
    """Whether a column of whole numbers, which come in pieces, names its rows.

    All values differ, none is missing, and they count the rows in any order, or the column is called an id, or they
    have 14 digits and more and are no times in microseconds or nanoseconds. Anything else is kept.

    >>> names_rows("row", pa.array(range(1, 101))), names_rows("age", pa.array([20, 30] * 50))
    (True, False)
    >>> names_rows("card", pa.array(range(4 * 10**15, 9 * 10**15, 5 * 10**13)))
    True
    >>> names_rows("x", pa.array(range(0, 200, 2)))
    False
    """

    def __init__(self, name: str) -> None:
        """Judge the column of this name."""
        self.names_rows = False
        self._name = name
        self._rows = self._missing = 0
        self._low = self._high = 0
        self._parts, self._part = 0, 0  # after the first pass, one part of the values is compared in each
        self._found: list[npt.NDArray[np.uint64]] = []

    def add(self, column: Any) -> None:
        """Take the next rows."""
        if self._parts:
            values = np.asarray(column).astype(np.uint64)  # negative ones wrap around and still differ
            spread = (values * _MIXING) >> np.uint64(32)
            self._found.append(values[spread % np.uint64(self._parts) == self._part])
            return
        bounds = pc.min_max(column).as_py()
        if bounds["min"] is not None:
            self._low = bounds["min"] if self._rows == 0 else min(self._low, bounds["min"])
            self._high = bounds["max"] if self._rows == 0 else max(self._high, bounds["max"])
        self._rows, self._missing = self._rows + len(column), self._missing + column.null_count

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        if not self._parts:
            self._parts = ceil(self._rows / _COMPARED)
            return self._may_name_rows()
        values = np.concatenate(self._found)
        self._found = []
        self._part += 1
        differ = len(np.unique(values)) == len(values)
        self.names_rows = differ and self._part == self._parts
        return differ and self._part < self._parts

    def _may_name_rows(self) -> bool:
        if self._missing or self._rows < LEAST_ROWS:
            return False
        low, high = self._low, self._high
        counts = high - low == self._rows - 1
        times = any(_MICROSECONDS[0] * unit <= low and high <= _MICROSECONDS[1] * unit for unit in (1, 1000))
        return counts or bool(_NAMED.search(self._name)) or (low >= _LONG and not times)


def names_rows(name: str, column: Any) -> bool:
    """Whether a whole column of whole numbers names its rows, as ``RowNames`` says."""
    judged = RowNames(name)
    judged.add(column)
    while judged.again():
        judged.add(column)
    return judged.names_rows


def counts_on(column: Any, *, before: int, first: int | None) -> bool:
    """Whether whole numbers go on counting the rows from the ``first`` of the column, after so many rows.

    >>> counts_on(pa.array([5, 6]), before=2, first=3), counts_on(pa.array([5, 7]), before=2, first=3)
    (True, False)
    """
    if first is None or column.null_count:
        return False
    values = np.asarray(column.cast(pa.int64(), safe=False))
    return bool((values == np.arange(first + before, first + before + len(values))).all())
