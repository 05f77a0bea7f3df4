"""How a table becomes numbers: learned from the training table, stored with the run, applied to later tables."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pinoise.data.checks import check_rows
from pinoise.data.dataset import Dataset, Part, Spans, Targets
from pinoise.data.encoding.columns import CategoricalColumn, Column, NumericColumn
from pinoise.data.encoding.labels import LabelEncoding, learn_targets
from pinoise.data.encoding.texts import TextColumn
from pinoise.data.formats.raw import RawTable
from pinoise.data.messages import counted, listed
from pinoise.data.options import MissingPolicy
from pinoise.errors import UserError, unknown_choice


@dataclass(frozen=True)
class TableEncoding:
    """What was learned from the training table: its columns, categories, fill values and labels.

    >>> import pyarrow as pa
    >>> from pinoise.data.encoding.learning import learn_table
    >>> from pinoise.data.options import ReadOptions
    >>> raw = RawTable(pa.table({"age": [20, None, 40], "town": ["Rome", "Oslo", "Rome"], "y": ["a", "b", "a"]}))
    >>> encoding, _ = learn_table(raw, ReadOptions(label="y"), where="people")
    >>> encoding.feature_names
    ('age', 'town=Oslo', 'town=Rome')
    >>> encoding.apply(raw, name="people", where="people").train.x.tolist()
    [[20.0, 0.0, 1.0], [30.0, 1.0, 0.0], [40.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    label: str | None  # the label's column; None where labels came apart from the table, or not at all
    labels: LabelEncoding | None
    dropped: tuple[str, ...]  # columns of the training table that carry no feature
    missing: MissingPolicy

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of features."""
        return (len(self.feature_names),)

    @property
    def spans(self) -> Spans:
        """The features of every column that became several: they share one unit, and noise moves them together."""
        stops = list(itertools.accumulate(size for column in self.columns for size in column.sizes))
        return tuple((start, stop) for start, stop in itertools.pairwise([0, *stops]) if stop - start > 1)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns whose cells must be read as text even where they look like numbers."""
        names = [column.name for column in self.columns if _is_read_as_text(column)]
        if self.label is not None and self.labels is not None and self.labels.text:
            names.append(self.label)
        return tuple(names)

    def apply(self, raw: RawTable, *, name: str, where: str, labelled: bool = True) -> Dataset:
        """Return a table with the training table's columns, in any order, as a data set.

        The label column may be absent, and ``labelled=False`` leaves labels unread.
        """
        table = raw.table
        names = column_names(table, where=where)
        there = set(names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise UserError(f"{where} lacks {counted(len(absent), 'column')} of the training table: {listed(absent)}.")
        if table.num_rows == 0:
            raise UserError(f"{where} has no rows.")
        # Double precision: a time in seconds needs more digits than float32 has.
        x = np.empty((table.num_rows, len(self.feature_names)), dtype=np.float64)
        notes = [*raw.notes, *self._ignored(names)]
        filled: dict[str, int] = {}
        blank: dict[str, int] = {}
        start = 0
        for column in self.columns:
            stop = start + len(column.features)
            done = column.encode(
                table.column(column.name), x[:, start:stop], refuse_missing=self.missing == "error", where=where
            )
            start = stop
            if done.missing:
                (blank if isinstance(column, CategoricalColumn) else filled)[column.name] = done.missing
            if done.unseen:
                notes.append(
                    f"column {column.name!r}: {counted(done.unseen, 'cell')} with values that training did not have "
                    f"({listed(done.examples)}) became all zeros"
                )
        return Dataset(
            name=name,
            train=Part(x, self._targets(raw, names, where) if labelled else None),
            feature_names=self.feature_names,
            class_names=self.labels.class_names if self.labels else None,
            spans=self.spans,
            notes=(*notes, *self._missing_notes(filled, blank)),
        )

    def with_label(
        self, raw: RawTable, label: str | int, *, regression: bool | None = None, where: str
    ) -> TableEncoding:
        """Return the encoding for a table whose labels are in another column than training's, with its own classes."""
        column = find_column(label, column_names(raw.table, where=where), where=where)
        if column == self.label:
            return self
        if column in [known.name for known in self.columns]:
            raise was_a_feature(column, where)
        labels = learn_targets(raw.table.column(column), where=label_column(column, where), regression=regression)
        return replace(self, label=column, labels=labels)

    def _targets(self, raw: RawTable, names: Sequence[str], where: str) -> Targets | None:
        if self.labels is None:
            return None
        if raw.y is not None:
            check_rows(len(raw.y), raw.table.num_rows, "labels", where)
            return self.labels.targets(raw.y, where=f"{where}, y")
        if self.label not in names:
            return None
        return self.labels.targets(raw.table.column(self.label), where=label_column(self.label, where))

    def _ignored(self, names: Sequence[str]) -> list[str]:
        known = {column.name for column in self.columns} | set(self.dropped) | {self.label}
        extra = [name for name in names if name not in known]
        return [f"ignored {counted(len(extra), 'column')} that training did not have: {listed(extra)}"] if extra else []

    def _missing_notes(self, filled: dict[str, int], blank: dict[str, int]) -> list[str]:
        notes = []
        if filled:
            own = f"its {self.missing}" if len(filled) == 1 else f"their {self.missing}s"
            notes.append(
                f"filled {counted(sum(filled.values()), 'missing value')} in {counted(len(filled), 'column')} with "
                f"{'zero' if self.missing == 'zero' else own}: {listed(filled)}"
            )
        known = {c.name for c in self.columns if isinstance(c, CategoricalColumn) and c.missing}
        for columns, became in (
            ([name for name in blank if name in known], "the category 'missing'"),
            ([name for name in blank if name not in known], "all zeros, as training had none missing"),
        ):
            if columns:
                cells = counted(sum(blank[name] for name in columns), "missing cell")
                notes.append(f"{cells} in {counted(len(columns), 'column')} became {became}: {listed(columns)}")
        return notes


def _is_read_as_text(column: Column) -> bool:
    """Whether the cells of a column may look like something else to a reader: 1.234 with a comma for the point."""
    if isinstance(column, CategoricalColumn):
        return column.kind == "text"
    return isinstance(column, TextColumn) or (isinstance(column, NumericColumn) and column.style == "comma")


def label_column(name: str | None, where: str) -> str:
    """Return how messages call the label's column."""
    return f"{where}, label column {name!r}"


def was_a_feature(column: str | int, where: str) -> UserError:
    """Return the error for labels in a column that training used as a feature."""
    return UserError(
        f"{where}: column {column!r} was a feature in training, so it cannot be the label: train again with "
        f"--label {column}."
    )


def column_names(table: Any, *, where: str) -> list[str]:
    """Return a table's column names, which must all be different."""
    names = list(table.column_names)
    if len(set(names)) < len(names):
        twice = next(name for name, number in Counter(names).items() if number > 1)
        raise UserError(f"{where} has more than one column called {twice!r}: rename them.")
    return names


def without_columns(raw: RawTable, drop: Sequence[str], *, where: str) -> RawTable:
    """Return a table without some of its columns, which must be there."""
    names = column_names(raw.table, where=where)
    return replace(raw, table=raw.table.drop_columns([find_column(name, names, where=where) for name in drop]))


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
        near: Iterable[str] = names if len(names) <= 30 else difflib.get_close_matches(column, names, n=10, cutoff=0.0)
        raise unknown_choice(f"column of {where}", column, near)
    return column
