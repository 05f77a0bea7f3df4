"""How a table becomes numbers: learned once from the training table, stored with the run, applied to every other."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pinoise.data.checks import check_rows
from pinoise.data.dataset import Dataset, Labels, Part
from pinoise.data.preparation.columns import CategoricalColumn, NumericColumn
from pinoise.data.preparation.labels import LabelEncoding
from pinoise.data.wording import counted, listed
from pinoise.errors import UserError, unknown_choice

MissingPolicy = Literal["median", "mean", "zero", "error"]


class Prepared(NamedTuple):
    """A table's features, class numbers where it has labels, and what was done to it."""

    x: npt.NDArray[np.float64]  # a time in seconds needs more digits than float32 has
    y: Labels | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TablePreparation:
    """What the training table taught: its columns, categories, fill values and labels.

    >>> import pyarrow as pa
    >>> from pinoise.data.preparation import learn_table
    >>> table = pa.table({"age": [20, None, 40], "town": ["Rome", "Oslo", "Rome"], "y": ["a", "b", "a"]})
    >>> preparation, _ = learn_table(table, label="y")
    >>> preparation.feature_names
    ('age', 'town=Oslo', 'town=Rome')
    >>> preparation.apply(table).x.tolist()
    [[20.0, 0.0, 1.0], [30.0, 1.0, 0.0], [40.0, 0.0, 1.0]]
    >>> TablePreparation.from_json(preparation.to_json()) == preparation
    True
    """

    columns: tuple[NumericColumn | CategoricalColumn, ...]
    label: str | None  # the label's column; None where labels came apart from the table, or not at all
    labels: LabelEncoding | None
    dropped: tuple[str, ...]  # columns of the training table that carry no feature
    missing: MissingPolicy

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns whose cells must be read as text even where they look like numbers."""
        names = [c.name for c in self.columns if isinstance(c, CategoricalColumn) and c.kind == "text"]
        if self.label is not None and self.labels is not None and self.labels.text:
            names.append(self.label)
        return tuple(names)

    def apply(self, table: Any, *, labelled: bool = True, where: str = "the table") -> Prepared:
        """Return the features of a table with the training table's columns, in any order.

        The label column may be absent, and ``labelled=False`` leaves it unread.
        """
        names = column_names(table, where=where)
        absent = [column.name for column in self.columns if column.name not in names]
        if absent:
            raise UserError(f"{where} lacks {counted(len(absent), 'column')} of the training table: {listed(absent)}.")
        if table.num_rows == 0:
            raise UserError(f"{where} has no rows.")
        x = np.empty((table.num_rows, len(self.feature_names)), dtype=np.float64)
        notes = self._ignored(names)
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
                (filled if isinstance(column, NumericColumn) else blank)[column.name] = done.missing
            if done.unseen:
                notes.append(
                    f"column {column.name!r}: {counted(done.unseen, 'cell')} with values that training did not have "
                    f"({listed(done.examples)}) became all zeros"
                )
        notes += self._missing_notes(filled, blank)
        y = None
        if labelled and self.label in names and self.labels is not None:
            y = self.labels.encode(table.column(self.label), where=f"{where}, label column {self.label!r}")
        return Prepared(x, y, tuple(notes))

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

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold and ``from_json`` turns back into the same preparation."""
        return {"kind": "table", **asdict(self)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> TablePreparation:
        """Return the preparation that ``to_json`` wrote; anything else is an error."""
        try:
            return cls(
                columns=tuple(_column_from_json(column) for column in stored["columns"]),
                label=stored["label"],
                labels=LabelEncoding.from_json(stored["labels"]),
                dropped=tuple(stored["dropped"]),
                missing=check_missing(stored["missing"]),
            )
        except (KeyError, TypeError) as error:
            raise UserError(f"the stored table preparation is damaged or of another version: {error!r}.") from error


def prepared_table(
    table: Any,
    preparation: TablePreparation,
    *,
    name: str,
    where: str,
    y: Any = None,
    labelled: bool = True,
    notes: Sequence[str] = (),
) -> Dataset:
    """Return a table as a data set, read as its training table was; ``y`` are labels apart from it, in Arrow."""
    done = preparation.apply(table, labelled=labelled, where=where)
    numbers = done.y
    if y is not None and labelled and preparation.labels is not None:
        check_rows(len(y), table.num_rows, "labels", where)
        numbers = preparation.labels.encode(y, where=f"{where}, y")
    return Dataset(
        name=name,
        train=Part(done.x, numbers),
        feature_names=preparation.feature_names,
        class_names=preparation.labels.names if preparation.labels else None,
        notes=(*notes, *done.notes),
    )


def _column_from_json(stored: dict[str, Any]) -> NumericColumn | CategoricalColumn:
    if "fill" in stored:
        return NumericColumn(**stored)
    return CategoricalColumn(**{**stored, "categories": tuple(stored["categories"])})


def check_missing(policy: str) -> MissingPolicy:
    """Return the policy for missing values if it is one."""
    for allowed in get_args(MissingPolicy):
        if policy == allowed:
            return allowed  # type: ignore[no-any-return]
    raise unknown_choice("policy for missing values", policy, get_args(MissingPolicy))


def column_names(table: Any, *, where: str) -> list[str]:
    """Return a table's column names, which must all be different."""
    names = list(table.column_names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{where} has more than one column called {twice!r}: rename them.")
    return names


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
