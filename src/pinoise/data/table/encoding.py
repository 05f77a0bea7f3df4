"""How a table becomes numbers: learned from a bounded part of the training table, then a map over batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pinoise.data.checks import check_rows
from pinoise.data.dataset import Dataset, Part, Samples, Spans, Targets
from pinoise.data.options import MissingPolicy, ReadOptions
from pinoise.data.table.batches import Table, held_table
from pinoise.data.table.categories import CategoricalColumn
from pinoise.data.table.cells import CellCounts, Floats, column_of, find_column, first_missing, missing_cell
from pinoise.data.table.kinds import Column, ColumnSample, LearnedColumn, learn_column, look, notes_on
from pinoise.data.table.labels import LabelEncoding, learn_targets, measurement_note, typed
from pinoise.errors import UserError, counted, listed, rows_among

_BLOCK_VALUES = 1 << 21  # features encoded at a time


@dataclass(frozen=True)
class TableEncoding:
    """What was learned from the training table: its columns, categories, fill values and labels.

    >>> table = held_table(
    ...     pa.table({"age": [20, None, 40], "town": ["Rome", "Oslo", "Rome"], "y": ["a", "b", "a"]}), where="people"
    ... )
    >>> encoding, _ = learn_table(table, ReadOptions(label="y", mark_missing=False))
    >>> encoding.feature_names
    ('age', 'town=Oslo', 'town=Rome')
    >>> encoding.apply(table, name="people").train.x.tolist()
    [[20.0, 0.0, 1.0], [30.0, 1.0, 0.0], [40.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    label: str | None  # the label's column; None where labels came apart from the table, or not at all
    labels: LabelEncoding | None
    dropped: tuple[str, ...]  # columns of the training table that carry no feature
    missing: MissingPolicy
    na: tuple[str, ...] = ()  # cells that are missing, beside the usual ones

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names) or self.label in names:
            raise ValueError("the columns are those of no table")

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

    def places(self) -> Iterator[tuple[Column, slice]]:
        """Yield every column with the place of its features in a row."""
        start = 0
        for column in self.columns:
            yield column, slice(start, start := start + len(column.features))

    @property
    def precision(self) -> Literal["float32", "float64"]:
        """The type in which rows are kept on disk."""
        return "float64" if any(column.precise for column in self.columns) else "float32"

    def apply(self, table: Table, *, name: str, labelled: bool = True, regression: bool | None = None) -> Dataset:
        """Return a table with the training table's columns, in any order, as a data set in memory.

        The label column may be absent, and ``labelled=False`` leaves labels unread.
        """
        encoder = TableEncoder(self, table, labelled=labelled)
        # Double precision: a time in seconds needs more digits than float32 has.
        x = np.concatenate(list(encoder.blocks()))
        y = encoder.targets(regression=regression)
        return encoder.encoding.dataset(x, y, encoder.notes(), name=name)

    def dataset(self, x: Samples, y: Targets | None, notes: Sequence[str], *, name: str) -> Dataset:
        """Return encoded rows as a data set."""
        classes = self.labels.class_names if self.labels else None
        return Dataset(name, Part(x, y), None, self.feature_names, classes, self.spans, tuple(notes))

    def decode(self, features: Floats, table: Any) -> Any:
        """Return features as an Arrow table like the one that they were encoded from: names, types, categories, gaps.

        Columns without a feature stay as they are.

        >>> held = pa.table({"n": [1, 2, 4], "town": ["Rome", "Oslo", "Rome"]})
        >>> encoding, _ = learn_table(held_table(held, where="toy"), ReadOptions())
        >>> encoding.decode(np.array([[1.2, 0, 1], [2.9, 0.2, 0.8], [4, 1, 0]]), held).to_pydict()
        {'n': [1, 3, 4], 'town': ['Rome', 'Rome', 'Oslo']}
        """
        stream = replace(held_table(table, where="X"), na=self.na)
        batches = [batch for _, batch in stream.batches([column.name for column in self.columns])]
        known, cells = pa.concat_tables(batches), dict(zip(table.column_names, table.itercolumns(), strict=True))
        for column, place in self.places():
            cells[column.name] = column.decode(features[:, place], known.column(column.name).combine_chunks())
        return pa.table(cells)

    def for_label(self, table: Table, label: str | int) -> TableEncoding:
        """Return the encoding for a table whose labels are in another column than training's, with classes of its own.

        These are not known before the column has been read.
        """
        column = find_column(label, table.names, where=table.where)
        if column == self.label:
            return self
        if column in [known.name for known in self.columns]:
            why = "was a feature in training, so it cannot be the label"
            raise UserError(f"{table.where}: column {column!r} {why}: train again with --label {column}.")
        return replace(self, label=column, labels=None)


def learn_table(table: Table, options: ReadOptions) -> tuple[TableEncoding, Table]:
    """Return the encoding of a training table, and the table with notes on every choice that was made.

    The table is then in memory where all of it was looked at.

    >>> table = held_table(pa.table({"a": [1.0, 2.0], "b": [7, 7], "c": [None, None]}), where="a.csv")
    >>> learn_table(table, ReadOptions())[1].notes
    ('dropped 1 column without any value: c', '1 column is constant: b')
    """
    names, where, table = table.names, table.where, replace(table, na=options.na)
    dropped = [find_column(name, names, where=where) for name in options.drop]
    for name in (*options.categorical, *options.text, *options.keep):
        find_column(name, names, where=where)
    label = None if options.label is None else find_column(options.label, names, where=where)
    wanted = [name for name in names if name not in dropped and name != label]
    seen = look(table, wanted, label)
    labels = None
    if label is not None:
        labels = _labels_of_column(label, seen.labels, table, options.regression)
    elif table.y is not None:
        labels = learn_targets(table.y, where=f"{where}, y", regression=options.regression)
    found: dict[str, LearnedColumn] = {}
    with rows_among(seen.numbers):
        for name in wanted:
            cells = seen.part.column(name).combine_chunks()
            found[name] = learn_column(ColumnSample(name, cells, options, table, seen.rows))
    columns = tuple(learned.column for learned in found.values() if learned.column is not None)
    notes = notes_on(found)
    if not columns:
        raise UserError(f"{where} has no feature column left: {'; '.join(notes) or 'it holds only the label'}.")
    if len(seen.part) < seen.rows:
        notes.append(f"what each column is was learned from {len(seen.part)} of {seen.rows} rows, drawn with seed 0")
    notes += [] if labels is None or options.regression else measurement_note(labels, label)
    dropped += [name for name, learned in found.items() if learned.column is None]
    encoding = TableEncoding(columns, label, labels, tuple(dropped), options.missing, options.na)
    if len(seen.part) == seen.rows:
        held = seen.part if label is None else seen.part.append_column(label, seen.labels)
        table = held_table(held, where=where, like=table)
    return encoding, replace(table, notes=(*table.notes, *notes))


def _labels_of_column(label: str, cells: Any, table: Table, regression: bool | None) -> LabelEncoding:
    cells = typed(cells) if table.kinds is None else cells
    return learn_targets(cells, where=f"{table.where}, label column {label!r}", regression=regression)


class TableEncoder:
    """Encodes the batches of a table one after another, and keeps count of what happened to its cells.

    ``encoding`` has the labels of the table once they are read, where it has its own.
    """

    def __init__(self, encoding: TableEncoding, table: Table, *, labelled: bool = True) -> None:
        """Check that the table has the columns of the encoding."""
        self.encoding, self._table = encoding, replace(table, na=encoding.na)
        absent = [column.name for column in encoding.columns if column.name not in table.names]
        if absent:
            lacks = f"lacks {counted(len(absent), 'column')} of the training table"
            raise UserError(f"{table.where} {lacks}: {listed(absent)}.")
        self.rows = 0
        own = encoding.labels is None and encoding.label is None  # training had none, so that later ones are not read
        self._labelled = labelled and not own
        in_table = self._labelled and table.y is None and encoding.label in table.names
        self._label = encoding.label if in_table else None
        self._cells: list[Any] = []
        self._found = {column.name: CellCounts() for column in encoding.columns}

    def blocks(self) -> Iterator[Floats]:
        """Yield the features of all rows in order, in arrays of bounded size."""
        width = len(self.encoding.feature_names)
        step = max(1, _BLOCK_VALUES // width)
        needed = [column.name for column in self.encoding.columns]
        for first, batch in self._table.batches([*needed, *([] if self._label is None else [self._label])]):
            if self._label is not None:
                self._cells += batch.column(self._label).chunks
            for start in range(0, batch.num_rows, step):
                some = batch.slice(start, step)
                with rows_among(range(first + start, first + start + some.num_rows)):
                    yield self._encoded(some, np.empty((some.num_rows, width)))
            self.rows = first + batch.num_rows

    def _encoded(self, batch: Any, out: Floats) -> Floats:
        for column, place in self.encoding.places():
            cells, where = batch.column(column.name).combine_chunks(), column_of(self._table.where, column.name)
            if self.encoding.missing == "error" and (row := first_missing(cells)) >= 0:
                raise missing_cell(row, where)
            done = column.encode(cells, out[:, place], where=where)
            self._found[column.name] = self._found[column.name].and_then(done)
        return out

    def targets(self, *, regression: bool | None = None) -> Targets | None:
        """Return the labels of all rows once they are encoded, None without any."""
        table, labels = self._table, self.encoding.labels
        if self._labelled and table.y is not None:
            check_rows(len(table.y), self.rows, "labels", table.where)
            return None if labels is None else labels.targets(table.y, where=f"{table.where}, y")
        if self._label is None:
            return None
        cells = pa.concat_arrays(self._cells)
        if labels is None:  # of another column than training's
            labels = _labels_of_column(self._label, cells, table, regression)
            self.encoding = replace(self.encoding, labels=labels)
        cells = typed(cells) if table.kinds is None and not labels.text else cells
        return labels.targets(cells, where=f"{table.where}, label column {self._label!r}")

    def notes(self) -> list[str]:
        """Return the notes on the table once all rows are encoded."""
        encoding, unseen = self.encoding, []
        filled, blank = dict[str, int](), dict[str, int]()
        for column in encoding.columns:
            done = self._found[column.name]
            if done.missing:
                (blank if isinstance(column, CategoricalColumn) else filled)[column.name] = done.missing
            if done.unseen:
                cells = f"{counted(done.unseen, 'cell')} with values that training did not have"
                unseen.append(f"column {column.name!r}: {cells} ({listed(done.examples)}) became all zeros")
        known = {column.name for column in encoding.columns} | set(encoding.dropped) | {encoding.label}
        if extra := [name for name in self._table.names if name not in known]:
            unseen.insert(0, f"ignored {counted(len(extra), 'column')} that training did not have: {listed(extra)}")
        return [*self._table.notes, *unseen, *_missing_notes(encoding, filled, blank)]


def _missing_notes(encoding: TableEncoding, filled: dict[str, int], blank: dict[str, int]) -> list[str]:
    notes = []
    if filled:
        policy = encoding.missing
        own = "zero" if policy == "zero" else f"its {policy}" if len(filled) == 1 else f"their {policy}s"
        marked = {column.name for column in encoding.columns if getattr(column, "marked", False)} & set(filled)
        beside = f", and marked those of {listed(sorted(marked))}" if marked else ""
        values = f"{counted(sum(filled.values()), 'missing value')} in {counted(len(filled), 'column')}"
        notes.append(f"filled {values} with {own}: {listed(filled)}{beside}")
    if blank:
        cells = counted(sum(blank.values()), "missing cell")
        notes.append(f"{cells} in {counted(len(blank), 'column')} became the category 'missing': {listed(blank)}")
    return notes
