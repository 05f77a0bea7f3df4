"""What is learned from the columns of a training table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.encoding.columns import (
    CategoricalColumn,
    Column,
    NumericColumn,
    column_kind,
    learn_categories,
    numbers_of,
)
from pinoise.data.encoding.dates import date_format, learn_dates
from pinoise.data.encoding.identifiers import names_rows
from pinoise.data.encoding.labels import LabelEncoding, learn_targets, measurement_note
from pinoise.data.encoding.numbers import Style, style_of
from pinoise.data.encoding.tables import TableEncoding, column_names, find_column, label_column
from pinoise.data.encoding.texts import TextColumn, is_prose, learn_text
from pinoise.data.formats.arrow import is_text, text_of
from pinoise.data.formats.raw import RawTable
from pinoise.data.messages import counted, listed
from pinoise.data.options import MissingPolicy, ReadOptions
from pinoise.errors import UserError


def learn_table(raw: RawTable, options: ReadOptions, *, where: str) -> tuple[TableEncoding, tuple[str, ...]]:
    """Return the encoding of a training table, and notes on every choice that was made.

    Numbers stay numbers. Text and truth values become categories, and so do the numbers of the columns that
    ``options.categorical`` names. Dates become days and cycles, and the columns that ``options.text`` names TF-IDF of
    their words.

    >>> raw = RawTable(pa.table({"a": [1.0, 2.0], "b": [7, 7], "c": [None, None]}))
    >>> learn_table(raw, ReadOptions(), where="a.csv")[1]
    ('dropped 1 column without any value: c', '1 column is constant: b')
    """
    table = raw.table
    names = column_names(table, where=where)
    if table.num_rows == 0:
        raise UserError(f"{where} has no rows.")
    dropped = [find_column(name, names, where=where) for name in options.drop]
    for name in (*options.categorical, *options.text, *options.keep):
        find_column(name, names, where=where)
    label, labels = _learn_label(raw, options, names, where)
    columns: list[Column] = []
    found = _Findings()
    left_out = {label, *dropped}
    for name in names:
        if name in left_out:
            continue
        column = table.column(name)
        learned = _learn_column(column, name, options, found, where)
        if learned is None:
            dropped.append(name)
        else:
            columns.append(learned)
    if not columns:
        raise UserError(f"{where} has no feature column left: {'; '.join(found.all()) or 'it holds only the label'}.")
    notes = [*found.all(), *([] if options.regression else measurement_note(labels, label))]
    return TableEncoding(tuple(columns), label, labels, tuple(dropped), options.missing), tuple(notes)


def _learn_column(column: Any, name: str, options: ReadOptions, found: _Findings, where: str) -> Column | None:
    """Return what a column becomes, None where it carries no feature."""
    if name in options.text:
        return found.text(column, name)
    if not {name} & {*options.keep, *options.categorical}:
        if _counts_rows(name, column):
            found.notes.append(f"dropped the column {name!r}, which only counts the rows")
            return None
        if names_rows(name, column):
            found.notes.append(f"dropped the column {name!r}, whose numbers name the rows; {_KEEPS.format(name=name)}")
            return None
    kind = column_kind(column, name, categorical=name in options.categorical, where=where)
    if kind == "empty" or column.null_count == len(column):
        found.empty.append(name)
        return None
    if kind == "number":
        return _learn_numbers(column, name, options.missing, found, where)
    if kind == "date":
        written = (date_format(column) or "") if is_text(column.type) else ""
        if written:
            found.notes.append(f"read the text of column {name!r} as dates, {written}")
        return learn_dates(column, name, written=written, mean=options.missing == "mean", where=where)
    learned = learn_categories(
        column, name, kind=kind, most=options.max_categories, keep=name in (*options.keep, *options.categorical)
    )
    found.categories(column, name, learned, options.max_categories)
    return learned


_KEEPS = "--set data.keep={name} (keep=[{name!r}]) keeps it"


def _learn_label(
    raw: RawTable, options: ReadOptions, names: Sequence[str], where: str
) -> tuple[str | None, LabelEncoding | None]:
    """Return the label's column, if labels are in the table, and their encoding, if there are any."""
    if options.label is not None:
        column = find_column(options.label, names, where=where)
        cells, said = raw.table.column(column), label_column(column, where)
        return column, learn_targets(cells, where=said, regression=options.regression)
    if raw.y is None:
        return None, None
    return None, learn_targets(raw.y, where=f"{where}, y", regression=options.regression)


class _Findings:
    """Notes collected column by column."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.empty: list[str] = []
        self.constant: list[str] = []
        self.as_numbers: list[str] = []

    def categories(self, column: Any, name: str, learned: CategoricalColumn | None, most: int) -> None:
        if learned is None and is_prose(column):
            self.notes.append(
                f"left out the text of column {name!r}: --text {name} (text=[{name!r}]) makes features of its words"
            )
        elif learned is None:
            self.notes.append(
                f"dropped the column {name!r}: nearly all of its {len(column) - column.null_count} values differ, as "
                f"in an identifier; {_KEEPS.format(name=name)}"
            )
        elif learned.other:
            self.notes.append(
                f"kept the {most} most frequent values of column {name!r}; the rest is {name + '=other'!r}"
            )
        elif len(learned.categories) == 1:
            self.constant.append(name)

    def text(self, column: Any, name: str) -> TextColumn | None:
        if not is_text(column.type):
            column = text_of(column)
        learned = learn_text(column, name)
        if learned is None:
            self.notes.append(f"dropped the text of column {name!r}: none of its words is in two rows")
        else:
            self.notes.append(
                f"made TF-IDF features of the {counted(len(learned.words), 'most frequent word')} of column {name!r}"
            )
        return learned

    def numbers(self, name: str, style: Style) -> None:
        if style == "plain":
            self.as_numbers.append(name)
        elif style == "comma":
            self.notes.append(f"took the commas in the numbers of column {name!r} for decimal points")
        else:
            self.notes.append(f"read the amounts of column {name!r} as numbers, without their signs")

    def all(self) -> list[str]:
        notes = list(self.notes)
        if self.as_numbers:
            notes.append(
                f"read the text of {counted(len(self.as_numbers), 'column')} as numbers: {listed(self.as_numbers)}"
            )
        if self.empty:
            notes.append(f"dropped {counted(len(self.empty), 'column')} without any value: {listed(self.empty)}")
        if self.constant:
            verb = "is" if len(self.constant) == 1 else "are"
            notes.append(f"{counted(len(self.constant), 'column')} {verb} constant: {listed(self.constant)}")
        return notes


def _learn_numbers(
    column: Any, name: str, missing: MissingPolicy, found: _Findings, where: str
) -> NumericColumn | None:
    style = style_of(text_of(column)) if is_text(column.type) else "plain"
    values = numbers_of(column, name, style=style, where=where)
    present = values[~np.isnan(values)]
    if len(present) == 0:
        found.empty.append(name)
        return None
    if is_text(column.type):
        found.numbers(name, style)
    fill = _fill_value(present, missing)
    if present.min() == present.max() and (len(present) == len(values) or fill == present[0]):
        found.constant.append(name)
    return NumericColumn(name, fill, style)


def _fill_value(present: npt.NDArray[np.float64], missing: MissingPolicy) -> float:
    if missing == "median":
        middle = len(present) // 2  # np.median takes ten times as long for a short column, of which there may be many
        low, high = np.partition(present, [middle - 1, middle])[[middle - 1, middle]]
        return float(high if len(present) % 2 else (low + high) / 2)
    return float(np.mean(present)) if missing == "mean" else 0.0


def _counts_rows(name: str, column: Any) -> bool:
    """Whether a column is the unnamed row number that a data frame saves."""
    if not name.startswith(("Unnamed: ", "__index_level_")) or not pa.types.is_integer(column.type):
        return False
    if column.null_count or len(column) < 2:
        return False
    first = column[0].as_py()
    expected = pa.array(np.arange(first, first + len(column)), pa.int64())
    return bool(pc.all(pc.equal(column.cast(pa.int64()), expected)).as_py())
