"""The target column of a table, which a classifier predicts: some of its cells may be empty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.dataset import Labels, Part, RowNumbers
from pinoise.data.source import find_source
from pinoise.data.table.cells import find_column
from pinoise.data.table.labels import LabelEncoding, learn_targets, typed
from pinoise.errors import UserError

UNLABELLED = -1
"""What marks a row without a label among numbers, as in ``sklearn.semi_supervised``."""

_SHOWN = 20  # classes in a note


@dataclass(frozen=True)
class Target:
    """The target column of a table: which rows have a label, and their class numbers."""

    column: str
    total: int  # rows of the table
    rows: RowNumbers  # those that have a label
    numbers: Labels  # their class numbers
    labels: LabelEncoding

    def as_dict(self) -> dict[str, Any]:
        """Return what was found, as plain values for JSON."""
        counts = np.bincount(self.numbers, minlength=len(self.labels.names)).tolist()
        classes = dict(zip(self.labels.names, counts, strict=True))
        return {"column": self.column, "rows": self.total, "labelled": len(self.rows), "classes": classes}

    @property
    def notes(self) -> list[str]:
        """What was found, in words, so that a mark for "unknown" does not become a class unseen."""
        found = [f"{name!r} {count}" for name, count in self.as_dict()["classes"].items()]
        shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
        notes = [f"{self.column}: {len(self.rows)} of {self.total} rows have a label: {shown}"]
        if str(UNLABELLED) in self.labels.names:
            notes.append(f"{self.column}: {UNLABELLED} is taken for a class: leave cells without a label empty")
        return notes

    def within(self, part: Part) -> Target:
        """Return the target of a part of the table, with row numbers within the part."""
        if part.origin is None:
            return self
        _, inside, own = np.intersect1d(np.asarray(part.origin.rows), self.rows, return_indices=True)
        order = np.argsort(inside)
        return replace(self, rows=inside[order], numbers=self.numbers[own[order]])


def read_target(source: str, column: str, *, na: tuple[str, ...] = ()) -> Target:
    """Read the labels in a column of a table; an empty cell, or one of ``na``, is a row without a label."""
    found = find_source(source)
    if found.kind != "table":
        raise UserError(f"--target names a column of a table (.csv, .parquet), and {source} is none.")
    table, where = replace(found.table(), na=na), f"{source}, target column {column!r}"
    name = find_column(column, table.names, where=source)
    cells = pa.concat_tables([batch for _, batch in table.batches([name])]).column(0).combine_chunks()
    cells = cells if table.kinds else typed(cells)
    given = pc.invert(pc.is_null(cells, nan_is_null=pa.types.is_floating(cells.type)))
    known = cells.filter(given)
    if len(known) == 0:
        raise UserError(f"{where} is empty: a classifier needs some labels.")
    labels = learn_targets(known, where=where, regression=False)
    rows = np.flatnonzero(given.to_numpy(zero_copy_only=False))
    return Target(column, len(cells), rows, labels.encode(known, where=where), labels)
