"""One column of a table: what is learned from it in training, and how its cells become features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.checks import LARGEST_NUMBER
from pinoise.data.encoding.cells import Encoded, missing_cell
from pinoise.data.encoding.dates import DateColumn
from pinoise.data.encoding.numbers import Style, as_plain, is_written
from pinoise.data.encoding.texts import TextColumn
from pinoise.data.formats.arrow import first_true, is_number, is_text, text_of
from pinoise.errors import RowError, UserError

MISSING, OTHER = "missing", "other"


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: one feature of the same name."""

    name: str
    fill: float
    style: Style = "plain"  # how its numbers are written where they are text

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together."""
        return (1,)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return (self.name,)

    def encode(self, column: Any, out: npt.NDArray[np.float64], *, refuse_missing: bool, where: str) -> Encoded:
        """Write the column's features into ``out`` of shape (rows, 1)."""
        values = numbers_of(column, self.name, style=self.style, where=where)
        missing = np.isnan(values)
        count = int(missing.sum())
        if count and refuse_missing:
            raise missing_cell(self.name, int(np.argmax(missing)), where)
        values[missing] = self.fill
        large = np.abs(values) > LARGEST_NUMBER
        if large.any():
            row = int(np.argmax(large))
            raise RowError(
                f"{where}: column {self.name!r}, data row ",
                row,
                f" holds {values[row]:g}, which is too large (beyond ±{LARGEST_NUMBER:.1e}): rescale the column.",
            )
        out[:, 0] = values
        return Encoded(missing=count)


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of text or truth values: one feature ``column=value`` for each category, 1 where it holds."""

    name: str
    categories: tuple[str, ...]
    kind: Literal["text", "boolean"]
    missing: bool  # a missing cell is the category "missing"; otherwise it has none
    other: bool  # a value without a category is the category "other"; otherwise it has none

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: all values of the category."""
        return (len(self.categories),)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, column: Any, out: npt.NDArray[np.float64], *, refuse_missing: bool, where: str) -> Encoded:
        """Write the column's features into ``out`` of shape (rows, categories)."""
        text = self._text(column, where)
        if text.null_count and refuse_missing:
            raise missing_cell(self.name, first_true(pc.is_null(text)), where)
        found = pc.index_in(text, value_set=pa.array(self.categories, pa.large_string()))
        codes = pc.fill_null(found, -1).to_numpy().astype(np.int64)  # (rows,), -1 without a category
        empty = np.asarray(pc.is_null(text).to_numpy(), dtype=bool)
        strange = (codes < 0) & ~empty
        numbers = int(strange.sum()) if self.kind == "text" and is_number(column.type) else 0
        if self.missing:
            codes[empty] = self.categories.index(MISSING)
        if self.other:
            codes[strange] = self.categories.index(OTHER)
            strange[:] = False
        rows = np.flatnonzero(codes >= 0)
        out[...] = 0.0
        out[rows, codes[rows]] = 1.0
        examples = pc.unique(text.filter(pa.array(strange))).to_pylist() if strange.any() else []
        return Encoded(int(empty.sum()), int(strange.sum()), tuple(examples), numbers)

    def _text(self, column: Any, where: str) -> Any:
        if pa.types.is_null(column.type):
            return column.cast(pa.large_string())
        if pa.types.is_dictionary(column.type):
            return text_of(column)
        readable = pa.types.is_boolean(column.type) or (
            self.kind == "text" and (is_text(column.type) or is_number(column.type))
        )
        if not readable:
            held = "true / false" if self.kind == "boolean" else "text"
            raise UserError(
                f"{where}: column {self.name!r} held {held} in training and holds {column.type} here: give the same "
                "column."
            )
        return text_of(column)


Column = NumericColumn | CategoricalColumn | DateColumn | TextColumn
"""What a column of a table becomes: its ``features``, and in ``sizes`` how many of them belong together each time."""


def numbers_of(column: Any, name: str, *, style: Style = "plain", where: str) -> npt.NDArray[np.float64]:
    """Return a column's numbers, NaN where missing; other text and infinity are errors that name the row."""
    kind = column.type
    if is_text(kind):
        text = text_of(column)
        stray = first_true(pc.invert(is_written(text, style)))
        if stray >= 0:
            raise stray_cell(name, stray, text[stray].as_py(), where)
        column = as_plain(text, style)
    elif not (is_number(kind) or pa.types.is_null(kind)):
        raise UserError(f"{where}: column {name!r} held numbers in training and holds {kind} here.")
    column = column if pa.types.is_floating(column.type) else column.cast(pa.float64(), safe=False)
    values = np.array(column.to_numpy(), dtype=np.float64)  # NaN where null
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise RowError(
            f"{where}: column {name!r}, data row ", row, " is infinite: write a finite number or leave it empty."
        )
    return values


def stray_cell(name: str, row: int, cell: str, where: str) -> RowError:
    """Return the error for a cell of text in a column of numbers."""
    return RowError(
        f"{where}: column {name!r} holds numbers, but data row ",
        row,
        f" holds {cell!r}: correct the cell, leave it empty (empty, NA, NaN and null are read as missing), or list the "
        "column as categorical.",
    )
