"""Small questions to Arrow arrays that several readers ask."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text.

    >>> is_text(pa.large_string()), is_text(pa.int8())
    (True, False)
    """
    return str(kind) in ("string", "large_string", "string_view")


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers; truth values and times do not count."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def first_true(mask: Any) -> int:
    """Return the position of the first true value, -1 without one.

    >>> first_true(pa.array([False, None, True]))
    2
    """
    return int(pc.index(mask, True).as_py())


def text_of(column: Any) -> Any:
    """Return a column's cells as trimmed text; missing and empty cells are null.

    >>> text_of(pa.array([1.0, None, 2.5])).to_pylist(), text_of(pa.array([" a", "", "b"])).to_pylist()
    (['1', None, '2.5'], ['a', None, 'b'])
    """
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    text = column.cast(pa.large_string())
    if is_text(column.type) or pa.types.is_dictionary(column.type):
        text = pc.utf8_trim_whitespace(text)
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    return text


def looks_like_number(text: Any) -> Any:
    """Return for each cell of text whether it is written as a number.

    >>> looks_like_number(pa.array(["12", "-1e3", "12a", "?", None])).to_pylist()
    [True, True, False, False, None]
    """
    return pc.match_substring_regex(text, NUMBER)
