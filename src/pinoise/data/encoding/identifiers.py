"""Columns of whole numbers that name rows rather than measure something."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LEAST_ROWS = 50  # in a shorter table, numbers that all differ may well be measurements
_NAMED = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|key|index|row)$|[a-z](Id|ID)$|^(ID|Id)$", re.IGNORECASE)
_LONG = 10**13  # from 14 digits on, a whole number that never repeats is no count
_MICROSECONDS = (9 * 10**14, 42 * 10**14)  # since 1970, from 1998 to 2103


def names_rows(name: str, column: Any) -> bool:
    """Whether a column of whole numbers names its rows.

    All values differ, none is missing, and they count the rows in any order, or the column is called an id, or they
    have 14 digits and more and are no times in microseconds or nanoseconds. Anything else is kept.

    >>> names_rows("row", pa.array(range(1, 101))), names_rows("age", pa.array([20, 30] * 50))
    (True, False)
    >>> names_rows("card", pa.array(range(4 * 10**15, 9 * 10**15, 5 * 10**13)))
    True
    >>> names_rows("x", pa.array(range(0, 200, 2)))
    False
    """
    if not pa.types.is_integer(column.type) or column.null_count or len(column) < LEAST_ROWS:
        return False
    if pc.count_distinct(column).as_py() < len(column):
        return False
    bounds = pc.min_max(column).as_py()
    low, high = bounds["min"], bounds["max"]
    counts = high - low == len(column) - 1
    times = any(_MICROSECONDS[0] * unit <= low and high <= _MICROSECONDS[1] * unit for unit in (1, 1000))
    return counts or bool(_NAMED.search(name)) or (low >= _LONG and not times)
