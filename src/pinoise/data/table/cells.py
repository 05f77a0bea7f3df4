"""Columns of Arrow and their cells, of whatever kind: names, text, gaps, and what messages say of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.errors import RowError, UserError, counted, damaged, unknown_choice

Floats = npt.NDArray[np.float64]

MISSING_WORDS = ("", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A")
"""The words for a missing cell of a text file."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"

_MOST_EXAMPLES = 1000


class CellCounts(NamedTuple):
    """What happened to the cells of a column: how many were missing, and which values training did not have."""

    missing: int = 0
    unseen: int = 0
    examples: tuple[str, ...] = ()

    def and_then(self, other: CellCounts) -> CellCounts:
        """Return what happened to the cells of two batches of a column.

        >>> CellCounts(1, 2, ("a", "b")).and_then(CellCounts(0, 1, ("a",)))
        CellCounts(missing=1, unseen=3, examples=('a', 'b'))
        """
        examples = tuple(dict.fromkeys((*self.examples, *other.examples)))[:_MOST_EXAMPLES]
        return CellCounts(self.missing + other.missing, self.unseen + other.unseen, examples)


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


def first_missing(column: Any) -> int:
    """Return the position of the first cell that is null, NaN or text without a character, -1 without one.

    >>> first_missing(pa.array([1.0, float("nan"), None])), first_missing(pa.array(["a", " "]))
    (1, 1)
    """
    column = column if is_number(column.type) else text_of(column)
    return first_true(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))


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
    is_written = is_text(column.type) or pa.types.is_dictionary(column.type)
    return without(pc.utf8_trim_whitespace(text), ("",)) if is_written else text


def without(text: Any, words: tuple[str, ...]) -> Any:
    """Return text in which some words are missing cells.

    >>> without(pa.array(["a", "?"]), ("?",)).to_pylist()
    ['a', None]
    """
    gone = pc.is_in(text, value_set=pa.array(words, text.type))
    return pc.if_else(gone, pa.scalar(None, text.type), text)


def looks_like_number(text: Any) -> Any:
    """Return for each cell of text whether it is written as a number.

    >>> looks_like_number(pa.array(["12", "-1e3", "0.5", "12a", None])).to_pylist()
    [True, True, True, False, None]
    """
    return pc.match_substring_regex(text, _NUMBER)


def are_codes(text: Any) -> bool:
    """Whether all cells of text are digits, and one begins with a zero: names such as postal codes, and no numbers.

    >>> are_codes(pa.array(["00123", "90210", None])), are_codes(pa.array(["007", "1.5"]))
    (True, False)
    """
    zeros = pc.any(pc.match_substring_regex(text, r"^0\d")).as_py()
    return bool(zeros) and are_all(pc.match_substring_regex(text, r"^\d+$"))


def are_all(mask: Any) -> bool:
    """Whether all cells of a mask are true; missing ones do not count, and without any cell none is.

    >>> are_all(pa.array([True, None])), are_all(pa.array([], pa.bool_()))
    (True, False)
    """
    return bool(len(mask) - mask.null_count and pc.all(mask).as_py())


def checked(table: Any, *, where: str | Path) -> Any:
    """Return a table whose columns hold what their types say; text that is not UTF-8 is an error that names its column.

    It costs a pass over the text.
    """
    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                what = f"{column_of(str(where), name)} is not text in UTF-8"
                raise UserError(f"{what}: save it in UTF-8, or leave it out.") from error
            raise damaged(column_of(str(where), name), error) from error
    return table


def column_of(where: str, name: str) -> str:
    """Return how messages call a column of a table."""
    return f"{where}: column {name!r}"


def missing_cell(row: int, where: str) -> RowError:
    """Return the error for a missing cell of a column that the user's policy refuses."""
    how = "fill it in, or choose missing='median', 'mean' or 'zero'."
    return RowError(f"{where}, data row ", row, f" is missing, which missing='error' refuses: {how}")


def stray_cell(row: int, cell: str, where: str, *, held: str, how: str) -> RowError:
    """Return the error for a cell of text that is not what a column holds."""
    return RowError(f"{where} holds {held}, but data row ", row, f" holds {cell!r}: {how}.")


def other_kind(held: str, kind: Any, where: str) -> UserError:
    """Return the error for a column that is not of the kind that it was in training."""
    return UserError(f"{where} held {held} in training and holds {kind} here: give the same column.")


def find_column(column: str | int, names: Sequence[str], *, where: str) -> str:
    """Return the name of a column given by name or by position, counted from 0 or, when negative, from the end.

    >>> find_column(-1, ["age", "class"], where="a.csv")
    'class'
    >>> find_column("clas", ["age", "class"], where="a.csv")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown column of a.csv 'clas': did you mean 'class'? Allowed: age, class.
    """
    if isinstance(column, int):
        if not -len(names) <= column < len(names):
            raise UserError(f"{where} has {counted(len(names), 'column')}: there is no column {column}.")
        return names[column]
    if column not in names:
        near = names if len(names) <= 30 else difflib.get_close_matches(column, names, n=10, cutoff=0.0)
        raise unknown_choice(f"column of {where}", column, near)
    return column
