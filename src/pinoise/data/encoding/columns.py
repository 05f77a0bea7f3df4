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
from pinoise.data.encoding.dates import DateColumn, date_format, is_date
from pinoise.data.encoding.numbers import Style, as_plain, is_written, style_of
from pinoise.data.encoding.texts import TextColumn
from pinoise.data.formats.arrow import first_true, is_number, is_text, text_of
from pinoise.errors import UserError

MISSING, OTHER = "missing", "other"
MOSTLY = 0.5  # a text column with this share of numbers is a numeric column with mistakes in it
IDENTIFIER = 0.9  # share of distinct values above which a long list of categories names rows, not groups

ColumnKind = Literal["number", "text", "boolean", "date", "empty"]


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
            raise UserError(
                f"{where}: column {self.name!r}, data row {row + 1} holds {values[row]:g}, which is too large "
                f"(beyond ±{LARGEST_NUMBER:.1e}): rescale the column."
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
        if self.kind == "text" and is_number(column.type) and strange.any() and (strange | empty).all():
            raise UserError(
                f"{where}: column {self.name!r} held text in training and holds numbers here: give the same column."
            )
        if self.missing:
            codes[empty] = self.categories.index(MISSING)
        if self.other:
            codes[strange] = self.categories.index(OTHER)
            strange[:] = False
        rows = np.flatnonzero(codes >= 0)
        out[...] = 0.0
        out[rows, codes[rows]] = 1.0
        examples = pc.unique(text.filter(pa.array(strange))).to_pylist() if strange.any() else []
        return Encoded(int(empty.sum()), int(strange.sum()), tuple(examples))

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
            raise _stray_cell(name, stray, text[stray].as_py(), where)
        column = as_plain(text, style)
    elif not (is_number(kind) or pa.types.is_null(kind)):
        raise UserError(f"{where}: column {name!r} held numbers in training and holds {kind} here.")
    column = column if pa.types.is_floating(column.type) else column.cast(pa.float64(), safe=False)
    values = np.array(column.to_numpy(), dtype=np.float64)  # NaN where null
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise UserError(
            f"{where}: column {name!r}, data row {row + 1} is infinite: write a finite number or leave it empty."
        )
    return values


def column_kind(column: Any, name: str, *, categorical: bool, where: str) -> ColumnKind:
    """Decide how a training column is read; ``categorical`` says that its numbers are names."""
    kind = column.type
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_dictionary(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_number(kind):
        return "text" if categorical else "number"
    if is_date(kind):
        return "text" if categorical else "date"
    if is_text(kind):
        if categorical:
            return "text"
        if _mostly_numbers(column, name, where):
            return "number"
        return "text" if date_format(column) is None else "date"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise UserError(f"{where}: column {name!r} is not text in UTF-8: save the file in UTF-8 or drop the column.")
    raise UserError(
        f"{where}: column {name!r} is of type {kind}, which is neither a number nor a category: turn it into numbers "
        "or drop the column."
    )


def learn_categories(
    column: Any, name: str, *, kind: Literal["text", "boolean"], most: int, keep: bool = False
) -> CategoricalColumn | None:
    """Return the categories of a column, at most the ``most`` frequent ones; None for a column that names the rows.

    ``keep`` makes categories of such a column, too.
    """
    text = text_of(column)
    counted = pc.value_counts(text.drop_null())
    tally = dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
    if not keep and len(tally) > most and len(tally) >= IDENTIFIER * sum(tally.values()):
        return None
    kept = sorted(sorted(tally, key=lambda value: (-tally[value], value))[:most])
    missing, other = text.null_count > 0, len(tally) > most
    # A category that is itself called "missing" or "other" means the same and is not repeated.
    kept += [extra for extra, used in ((MISSING, missing), (OTHER, other)) if used and extra not in kept]
    return CategoricalColumn(name, tuple(kept), kind, missing=missing, other=other)


def _mostly_numbers(column: Any, name: str, where: str) -> bool:
    text = text_of(column)
    cells = len(text) - text.null_count
    style = style_of(text)
    written = is_written(text, style)
    numbers = pc.sum(written).as_py() or 0
    if cells == 0 or numbers < MOSTLY * cells:
        return False
    stray = first_true(pc.invert(written))
    if stray >= 0:
        raise _stray_cell(name, stray, text[stray].as_py(), where)
    return True


def _stray_cell(name: str, row: int, cell: str, where: str) -> UserError:
    return UserError(
        f"{where}: column {name!r} holds numbers, but data row {row + 1} holds {cell!r}: correct the cell, leave it "
        "empty (empty, NA, NaN and null are read as missing), or list the column as categorical."
    )
