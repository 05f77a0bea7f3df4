"""A column of numbers, also as people write them: amounts of money, percentages, commas for decimal points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.checks import LARGEST_NUMBER
from pinoise.data.options import MissingPolicy, ReadOptions
from pinoise.data.table.cells import (
    CellCounts,
    Floats,
    first_true,
    is_number,
    is_text,
    looks_like_number,
    other_kind,
    stray_cell,
    text_of,
)
from pinoise.errors import RowError

Style = Literal["plain", "point", "comma"]
"""How the numbers of a column are written: 1000.5; $1,000.50 or 12 %; 1.000,50 € or 1,5."""

STYLES: tuple[Style, ...] = get_args(Style)
"""All styles, the plainest first."""

MARKED = 0.01
"""The share of missing cells from which a column of numbers has an indicator beside it."""

_CURRENCY = r"(?:[$€£¥]|USD|EUR|GBP|CHF|JPY)?"
_PATTERNS: dict[Style, str] = {
    "point": rf"^[+-]?\s*{_CURRENCY}\s*[+-]?(\d{{1,3}}([ ',]\d{{3}})+|\d+)(\.\d*)?\s*({_CURRENCY}|%)$",
    "comma": rf"^[+-]?\s*{_CURRENCY}\s*[+-]?(\d{{1,3}}([ '.]\d{{3}})+|\d+)(,\d*)?\s*({_CURRENCY}|%)$",
}
_MARKS = r"[\s'$€£¥%]|USD|EUR|GBP|CHF|JPY"


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: one feature of the same name, and one that marks missing cells where there were many."""

    name: str
    fill: float
    style: Style = "plain"  # how its numbers are written where they are text
    marked: bool = False  # whether 1 in a second feature says that the cell was missing
    precise: bool = False  # whether single precision would lose digits that matter

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: each is one of its own."""
        return (1, 1) if self.marked else (1,)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return (self.name, f"{self.name}=missing") if self.marked else (self.name,)

    def encode(self, column: Any, out: Floats, *, where: str) -> CellCounts:
        """Write the column's features into ``out`` of shape (rows, features)."""
        values = numbers_of(column, style=self.style, where=where)
        missing = np.isnan(values)
        out[:, 0] = np.where(missing, self.fill, values)
        if self.marked:
            out[:, 1] = missing
        return CellCounts(missing=int(missing.sum()))

    def decode(self, features: Floats, column: Any) -> Any:
        """Return features as cells of the type that ``column`` has, whose gaps stay gaps."""
        gaps = np.isnan(numbers_of(column, style=self.style, where=""))
        values, kind = features[:, 0], column.type
        if pa.types.is_integer(kind):
            bits = np.iinfo(kind.to_pandas_dtype())
            values = np.clip(np.rint(values), float(bits.min), float(bits.max))
        decoded = pa.array(np.asarray(values, dtype=np.float64), mask=gaps)
        return decoded.cast(kind, safe=False) if is_number(kind) and not pa.types.is_decimal(kind) else decoded


def numbers_of(column: Any, *, style: Style = "plain", where: str) -> Floats:
    """Return a column's numbers, NaN where missing; other text and too large ones are errors that name the row."""
    kind = column.type
    if is_text(kind):
        text = text_of(column)
        stray = first_true(pc.invert(is_written(text, style)))
        if stray >= 0:
            raise no_number(stray, text[stray].as_py(), where)
        column = as_plain(text, style)
    elif not (is_number(kind) or pa.types.is_null(kind)):
        raise other_kind("numbers", kind, where)
    column = column if pa.types.is_floating(column.type) else column.cast(pa.float64(), safe=False)
    values = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)  # NaN where null
    if (large := np.abs(values) > LARGEST_NUMBER).any():
        row = int(np.argmax(large))
        what = f" holds {values[row]:g}, which is too large (beyond ±{LARGEST_NUMBER:.1e})"
        raise RowError(f"{where}, data row ", row, f"{what}: rescale the column, or leave the cell empty.")
    return values


def no_number(row: int, cell: str, where: str) -> RowError:
    """Return the error for a cell of text in a column of numbers."""
    how = f"correct it, read it as missing (--na {cell!r}, na=[{cell!r}]), or list the column as categorical"
    return stray_cell(row, cell, where, held="numbers", how=how)


def is_written(text: Any, style: Style) -> Any:
    """Return for each cell of text whether it is a number in this style.

    >>> is_written(pa.array(["$1,000.00", "12 %", "1,5"]), "point").to_pylist()
    [True, True, False]
    >>> is_written(pa.array(["1.000,50 €", "1,5"]), "comma").to_pylist()
    [True, True]
    """
    return looks_like_number(text) if style == "plain" else pc.match_substring_regex(text, _PATTERNS[style])


def as_plain(text: Any, style: Style) -> Any:
    """Return numbers of a style as plain ones; a percentage stays one.

    >>> as_plain(pa.array(["-$1,000.50", "12 %"]), "point").to_pylist()
    ['-1000.50', '12']
    >>> as_plain(pa.array(["1.000,5"]), "comma").to_pylist()
    ['1000.5']
    """
    text = text_of(text)
    if style == "plain":
        return text
    thousands = "," if style == "point" else "."
    text = pc.replace_substring(pc.replace_substring_regex(text, _MARKS, ""), thousands, "")
    return pc.replace_substring(text, ",", ".")  # the decimal comma, if there is one


def learn_numbers(name: str, values: Floats, style: Style, options: ReadOptions) -> NumericColumn:
    """Return what is learned from numbers, NaN where missing, of which there is one: what fills and marks gaps."""
    present = values[~np.isnan(values)]
    marked = options.mark_missing and 1 - len(present) / len(values) >= MARKED
    return NumericColumn(name, fill_value(present, options.missing), style, marked, needs_double(present))


def fill_value(present: Floats, policy: MissingPolicy) -> float:
    """Return what fills the gaps of numbers under a policy.

    >>> fill_value(np.array([1.0, 2.0, 9.0]), "median"), fill_value(np.array([1.0, 2.0, 9.0]), "mean")
    (2.0, 4.0)
    """
    if policy == "median":
        return float(np.median(present))
    return float(present.mean()) if policy == "mean" else 0.0


def needs_double(present: Floats) -> bool:
    """Whether single precision changes a number by more than a millionth of the range of all.

    >>> needs_double(np.array([0.1, 9.7])), needs_double(1.7e9 + np.arange(9.0))
    (False, True)
    """
    with np.errstate(over="ignore"):
        lost = np.abs(present.astype(np.float32) - present).max()
    return bool(lost > 1e-6 * np.ptp(present))
