"""How a table becomes numbers: learned from the training table, stored with the run, applied to later tables."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.checks import check_rows
from pinoise.data.dataset import Dataset, Part, Spans, Targets
from pinoise.data.encoding.cells import Encoded
from pinoise.data.encoding.columns import CategoricalColumn, Column, NumericColumn
from pinoise.data.encoding.dates import DateColumn, common_format
from pinoise.data.encoding.labels import LabelEncoding, LabelStudy
from pinoise.data.encoding.texts import TextColumn
from pinoise.data.formats.arrow import is_text
from pinoise.data.formats.raw import Table, check_names
from pinoise.data.messages import counted, listed
from pinoise.data.options import MissingPolicy
from pinoise.errors import UserError, rows_before, unknown_choice


@dataclass(frozen=True)
class TableEncoding:
    """What was learned from the training table: its columns, categories, fill values and labels.

    >>> import pyarrow as pa
    >>> from pinoise.data.encoding.learning import learn_table
    >>> from pinoise.data.formats.raw import RawTable
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

    def apply(
        self, raw: Table, *, name: str, where: str, labelled: bool = True, learned: Sequence[str] = ()
    ) -> Dataset:
        """Return a table with the training table's columns, in any order, as a data set in memory.

        The label column may be absent, and ``labelled=False`` leaves labels unread. ``learned`` are notes on what was
        learned from it.
        """
        encoder = TableEncoder(self, raw, where=where, labelled=labelled)
        # Double precision: a time in seconds needs more digits than float32 has.
        x = np.empty((raw.rows, len(self.feature_names)), dtype=np.float64)
        targets = [encoder.encode(piece, first, x[first : first + len(piece)]) for first, piece in encoder.pieces()]
        y: Any = [part for part in targets if part is not None]
        return self.dataset(Part(x, np.concatenate(y) if y else None), encoder.notes(learned), name=name)

    def dataset(self, part: Part, notes: Sequence[str], *, name: str) -> Dataset:
        """Return encoded rows as a data set."""
        return Dataset(
            name=name,
            train=part,
            feature_names=self.feature_names,
            class_names=self.labels.class_names if self.labels else None,
            spans=self.spans,
            notes=tuple(notes),
        )

    def with_label(self, raw: Table, label: str | int, *, regression: bool | None = None, where: str) -> TableEncoding:
        """Return the encoding for a table whose labels are in another column than training's, with its own classes."""
        column = find_column(label, column_names(raw, where=where), where=where)
        if column == self.label:
            return self
        if column in [known.name for known in self.columns]:
            raise was_a_feature(column, where)
        labels = study_labels(raw, column, where=where)
        learned = labels.learned(where=label_column(column, where), regression=regression)
        return replace(self, label=column, labels=learned)

    def with_dates_of(self, raw: Table) -> TableEncoding:
        """Return the encoding for a table in pieces that may write as text what were dates in training.

        All pieces together say how: 01/02/2025 alone could be a day of January or of February.
        """
        there, columns = set(raw.names), []
        for column in self.columns:
            if isinstance(column, DateColumn) and not column.written and column.name in there:
                name = column.name
                if is_text(raw.kind_of(name)):
                    written = common_format(piece.column(name) for _, piece in raw.pieces([name]))
                    column = replace(column, written=written)
            columns.append(column)
        return replace(self, columns=tuple(columns))

    def check_labels(self, raw: Table, *, where: str) -> None:
        """Raise an error if labels are missing in a table in pieces, of which one piece alone cannot tell how many."""
        if self.labels is not None and self.label is not None and self.label in raw.names:
            study_labels(raw, self.label, where=where).check(where=label_column(self.label, where))


class TableEncoder:
    """Encodes the pieces of a table one after another, and keeps count of what happened to its cells."""

    def __init__(self, encoding: TableEncoding, raw: Table, *, where: str, labelled: bool = True) -> None:
        """Check that the table has the columns of the encoding."""
        self._encoding, self._raw, self._where = encoding, raw, where
        self._names = column_names(raw, where=where)
        there = set(self._names)
        absent = [column.name for column in encoding.columns if column.name not in there]
        if absent:
            raise UserError(f"{where} lacks {counted(len(absent), 'column')} of the training table: {listed(absent)}.")
        if raw.rows == 0:
            raise UserError(f"{where} has no rows.")
        if raw.y is not None:
            check_rows(len(raw.y), raw.rows, "labels", where)
        labelled = labelled and encoding.labels is not None
        self._label = encoding.label if labelled and encoding.label in there and raw.y is None else None
        self._labels = encoding.labels if labelled else None
        self._found: dict[str, Encoded] = {}

    def pieces(self) -> Iterator[tuple[int, Any]]:
        """Yield the pieces of the table with what is needed to encode them."""
        needed = [column.name for column in self._encoding.columns]
        return self._raw.pieces([*needed, *([] if self._label is None else [self._label])])

    def encode(self, piece: Any, first: int, out: npt.NDArray[np.float64]) -> Targets | None:
        """Write the features of a piece into ``out`` of shape (rows, features), and return its labels if there are any.

        Args:
            piece: an Arrow table.
            first: the number of its first row in the whole table.
            out: where the features go.
        """
        encoding, where, start = self._encoding, self._where, 0
        with rows_before(first):
            for column in encoding.columns:
                stop = start + len(column.features)
                done = column.encode(
                    piece.column(column.name),
                    out[:, start:stop],
                    refuse_missing=encoding.missing == "error",
                    where=where,
                )
                self._found[column.name] = self._found.get(column.name, Encoded(0)).and_then(done)
                start = stop
            if self._labels is None:
                return None
            if self._label is not None:
                return self._labels.targets(piece.column(self._label), where=label_column(self._label, where))
            if self._raw.y is None:
                return None
            own = (
                self._raw.y
                if first == 0 and len(piece) == len(self._raw.y)
                else self._raw.y[first : first + len(piece)]
            )
            return self._labels.targets(own, where=f"{where}, y")

    def notes(self, learned: Sequence[str] = ()) -> list[str]:
        """Return the notes on the table once all pieces are encoded; ``learned`` are those on what it taught."""
        encoding, unseen = self._encoding, []
        filled: dict[str, int] = {}
        blank: dict[str, int] = {}
        for column in encoding.columns:
            done = self._found[column.name]
            if done.numbers and done.numbers + done.missing == self._raw.rows:
                raise UserError(
                    f"{self._where}: column {column.name!r} held text in training and holds numbers here: give the "
                    "same column."
                )
            if done.missing:
                (blank if isinstance(column, CategoricalColumn) else filled)[column.name] = done.missing
            if done.unseen:
                unseen.append(
                    f"column {column.name!r}: {counted(done.unseen, 'cell')} with values that training did not have "
                    f"({listed(done.examples)}) became all zeros"
                )
        return [*self._raw.notes, *learned, *self._ignored(), *unseen, *self._missing_notes(filled, blank)]

    def _ignored(self) -> list[str]:
        encoding = self._encoding
        known = {column.name for column in encoding.columns} | set(encoding.dropped) | {encoding.label}
        extra = [name for name in self._names if name not in known]
        return [f"ignored {counted(len(extra), 'column')} that training did not have: {listed(extra)}"] if extra else []

    def _missing_notes(self, filled: dict[str, int], blank: dict[str, int]) -> list[str]:
        notes = []
        if filled:
            own = f"its {self._encoding.missing}" if len(filled) == 1 else f"their {self._encoding.missing}s"
            notes.append(
                f"filled {counted(sum(filled.values()), 'missing value')} in {counted(len(filled), 'column')} with "
                f"{'zero' if self._encoding.missing == 'zero' else own}: {listed(filled)}"
            )
        known = {c.name for c in self._encoding.columns if isinstance(c, CategoricalColumn) and c.missing}
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


def study_labels(raw: Table, column: str, *, where: str) -> LabelStudy:
    """Return what the labels in a column of a table are."""
    study = LabelStudy()
    for _, piece in raw.pieces([column]):
        study.add(piece.column(column), where=label_column(column, where))
    return study


def column_names(raw: Table, *, where: str) -> list[str]:
    """Return a table's column names, which must all be different."""
    names = raw.names
    check_names(names, where=where)
    return names


@dataclass(frozen=True)
class WithoutColumns(Table):
    """A table without some of its columns, which must be there.

    >>> import pyarrow as pa
    >>> from pinoise.data.formats.raw import RawTable
    >>> WithoutColumns(RawTable(pa.table({"a": [1], "b": [2]})), ("a",), where="a.csv").names
    ['b']
    """

    whole: Table
    drop: tuple[str, ...]
    where: str

    def __post_init__(self) -> None:
        names = column_names(self.whole, where=self.where)
        object.__setattr__(self, "drop", tuple(find_column(name, names, where=self.where) for name in self.drop))
        object.__setattr__(self, "y", self.whole.y)
        object.__setattr__(self, "notes", self.whole.notes)

    @property
    def names(self) -> list[str]:
        """The names of the columns that are left."""
        return [name for name in self.whole.names if name not in self.drop]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.whole.rows

    def kind_of(self, name: str) -> Any:
        """Return the Arrow type of a column."""
        return self.whole.kind_of(name)

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield the pieces of the whole table."""
        return self.whole.pieces(columns)


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
