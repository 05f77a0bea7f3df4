"""What a training table teaches about its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.formats.arrow import is_text
from pinoise.data.preparation.columns import CategoricalColumn, NumericColumn, column_kind, learn_categories, numbers_of
from pinoise.data.preparation.labels import LabelEncoding, learn_labels
from pinoise.data.preparation.tables import (
    MissingPolicy,
    TablePreparation,
    check_missing,
    column_names,
    find_column,
)
from pinoise.data.wording import counted, listed
from pinoise.errors import UserError

MAX_CATEGORIES = 64


def learn_table(
    table: Any,
    *,
    label: str | int | None = None,
    labels: LabelEncoding | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: MissingPolicy = "median",
    max_categories: int = MAX_CATEGORIES,
    where: str = "the table",
) -> tuple[TablePreparation, tuple[str, ...]]:
    """Return the preparation that a training table asks for, and notes on every choice that was made.

    Numbers stay numbers; text and truth values become categories, and so do the numbers of the columns in
    ``categorical``. ``labels`` are those of labels given apart from the table.

    >>> preparation, notes = learn_table(pa.table({"a": [1.0, 2.0], "b": [7, 7], "c": [None, None]}))
    >>> notes
    ('dropped 1 column without any value: c', '1 column is constant: b')
    """
    check_missing(missing)
    if max_categories < 1:
        raise UserError(f"max_categories is {max_categories}: it must be at least 1.")
    names = column_names(table, where=where)
    if table.num_rows == 0:
        raise UserError(f"{where} has no rows.")
    dropped = [find_column(name, names, where=where) for name in drop]
    named = {find_column(name, names, where=where) for name in categorical}
    if label is not None:
        label = find_column(label, names, where=where)
        labels = learn_labels(table.column(label), where=f"{where}, label column {label!r}")

    columns: list[NumericColumn | CategoricalColumn] = []
    found = _Findings()
    for name in names:
        if name == label or name in dropped:
            continue
        column = table.column(name)
        if _counts_rows(name, column):
            found.notes.append(f"dropped the column {name!r}, which only counts the rows")
            dropped.append(name)
            continue
        kind = column_kind(column, name, categorical=name in named, where=where)
        learned: NumericColumn | CategoricalColumn | None
        if kind == "empty" or column.null_count == len(column):
            found.empty.append(name)
            learned = None
        elif kind == "number":
            learned = _learn_numbers(column, name, missing, found, where)
        else:
            learned = learn_categories(column, name, kind=kind, most=max_categories)
            found.categories(column, name, learned, max_categories)
        if learned is None:
            dropped.append(name)
        else:
            columns.append(learned)
    if not columns:
        raise UserError(f"{where} has no feature column left: {'; '.join(found.all()) or 'it holds only the label'}.")
    return TablePreparation(tuple(columns), label, labels, tuple(dropped), missing), tuple(found.all())


class _Findings:
    """Notes collected column by column and told once."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.empty: list[str] = []
        self.constant: list[str] = []
        self.as_numbers: list[str] = []

    def categories(self, column: Any, name: str, learned: CategoricalColumn | None, most: int) -> None:
        if learned is None:
            self.notes.append(
                f"dropped the column {name!r}: nearly all of its {len(column) - column.null_count} values differ, as "
                "in an identifier"
            )
        elif learned.other:
            self.notes.append(
                f"kept the {most} most frequent values of column {name!r}; the rest is {name + '=other'!r}"
            )
        elif len(learned.categories) == 1:
            self.constant.append(name)

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
    values = numbers_of(column, name, where=where)
    present = values[~np.isnan(values)]
    if len(present) == 0:
        found.empty.append(name)
        return None
    if is_text(column.type):
        found.as_numbers.append(name)
    fill = _fill_value(present, missing)
    if present.min() == present.max() and (len(present) == len(values) or fill == present[0]):
        found.constant.append(name)
    return NumericColumn(name, fill)


def _fill_value(present: npt.NDArray[np.float64], missing: MissingPolicy) -> float:
    if missing == "median":
        return float(np.median(present))
    return float(np.mean(present)) if missing == "mean" else 0.0


def _counts_rows(name: str, column: Any) -> bool:
    """Whether a column is the row number that a data frame saves under no name of its own."""
    if not name.startswith(("Unnamed: ", "__index_level_")) or not pa.types.is_integer(column.type):
        return False
    if column.null_count or len(column) < 2:
        return False
    first = column[0].as_py()
    expected = pa.array(np.arange(first, first + len(column)), pa.int64())
    return bool(pc.all(pc.equal(column.cast(pa.int64()), expected)).as_py())
