"""The embedding of a table in pieces, by one process or by many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pinoise.data.dataset import Part, fingerprint_parts
from pinoise.data.encoding.tables import find_column
from pinoise.data.formats.memory import InMemory
from pinoise.data.formats.raw import Table
from pinoise.data.pieces import BATCH_ROWS, PIECE_ROWS, Pieces, Place, cut, find_place
from pinoise.data.preparation.kinds import TablePreparation
from pinoise.data.source import source_files
from pinoise.errors import UserError, rows_before
from pinoise.evaluation import embed
from pinoise.evaluation.parts import Plan, begin, check_parts, write_part
from pinoise.training.load import Run


@dataclass(frozen=True)
class Work(ABC):
    """Data that is embedded in parts."""

    run: Run
    out: Place
    plan: Plan
    missing: tuple[int, ...]  # the parts that are still to be written
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.plan.rows)

    @abstractmethod
    def tables(self, number: int) -> Iterator[Any]:
        """Yield the rows of a part as Arrow tables of bounded size."""


@dataclass(frozen=True)
class RowWork(Work):
    """Rows of any kind that are embedded in parts."""

    data: Part
    where: str  # what messages call the data

    def tables(self, number: int) -> Iterator[Any]:
        """Yield the embedding of the rows of a part, with their files where rows are files."""
        first = sum(self.plan.rows[:number])
        stop = first + self.plan.rows[number]
        rows = self.run.rows(self.data.x, where=self.where)
        for start in range(first, stop, BATCH_ROWS):
            some = range(start, min(start + BATCH_ROWS, stop))
            z = embed(self.run.embedding, rows, only=some)
            names = [] if self.data.names is None else [pa.array(self.data.names[start : some.stop])]
            beside = [] if self.data.names is None else ["file"]
            yield pa.table([*names, *z.T], names=[*beside, *self.run.column_names])


def plan_rows(run: Run, data: str, out: str, *, force: bool = False, progress: bool = False) -> Work:
    """Return the work of embedding data of any kind in parts.

    Args:
        run: a run.
        data: a file, a folder or a name.
        out: the folder to write. Parts that are there already stay.
        force: whether a folder that holds another embedding is begun again.
        progress: whether downloads and the decoding of images show a bar.
    """
    place = find_place(out)
    for path in source_files(data):
        _check_apart(place, find_place(str(path)))
    found = run.read(data, labelled=False, progress=progress)
    if found.test is not None:
        raise UserError(f"{data} has a training and a test part: write one file instead, with --part.")
    n = len(found.train)
    sizes = tuple(min(PIECE_ROWS, n - start) for start in range(0, n, PIECE_ROWS))
    plan = Plan(run.weights, fingerprint_parts(found), (), sizes)
    missing = tuple(begin(place, plan, force=force))
    return RowWork(run, place, plan, missing, run.new_notes(found.notes, data), found.train, data)


def _check_apart(out: Place, source: Place) -> None:
    if out.lies_in(source):
        raise UserError(f"{out.name} lies in {source.name}, which is read: choose another folder to write.")


def write_missing(work: Work, *, done: Callable[[int], object] = lambda _: None) -> None:
    """Write the parts that are missing, and check that every planned row is there.

    Args:
        work: what is to be embedded.
        done: called with the number of every part that was written.
    """
    for number in work.missing:
        write_part(work.out, number, work.tables(number))
        done(number)
    check_parts(work.out, work.plan)


@dataclass(frozen=True)
class TableWork(Work):
    """A table that is embedded in parts. Another process can do a piece of it."""

    source: Pieces
    preparation: TablePreparation

    def tables(self, number: int) -> Iterator[Any]:
        """Yield the rows of a part: the columns that are kept, and the embedding beside them."""
        first = sum(self.plan.rows[:number])
        for table in self.source.pieces[number].batches(needed_columns(self.run, self.source, self.plan.keep)):
            with rows_before(first):
                z, _ = embedded(self.run, self.preparation, table, where=self.source.place.name)
            first += table.num_rows
            kept = [table.column(name) for name in self.plan.keep]
            yield pa.table([*kept, *z.T], names=[*self.plan.keep, *self.run.column_names])


def plan_work(run: Run, data: str, out: str, *, keep: Sequence[str] = (), force: bool = False) -> Work:
    """Return the work of embedding a table in parts, after its first rows have been embedded as a trial.

    Args:
        run: a run that was trained on a table.
        data: a Parquet file, a folder of them, or its address.
        out: the folder to write, or its address. Parts that are there already stay.
        keep: columns of the table to pass through.
        force: whether a folder that holds another embedding is begun again.
    """
    if not isinstance(run.preparation, TablePreparation):
        raise UserError(f"{run.path} was trained on {run.preparation.description}: parts are written for tables only.")
    source, place = cut(find_place(data)), find_place(out)
    _check_apart(place, source.place)
    keep = tuple(find_column(name, source.schema.names, where=data) for name in dict.fromkeys(keep))
    for name in keep:
        if name in run.column_names:
            raise UserError(f"--keep {name}: the embedding has this column already, standardised; leave it out.")
    first = next(source.pieces[0].batches(needed_columns(run, source, keep)))
    preparation = TablePreparation(run.preparation.encoding.with_dates_of(_PieceTable(source)))
    _, notes = embedded(run, preparation, first, where=data)
    plan = Plan(run.weights, source.fingerprint, keep, tuple(piece.rows for piece in source.pieces))
    missing = begin(place, plan, force=force)
    said = tuple(f"in the first {first.num_rows} rows: {sentence}" for sentence in notes)
    return TableWork(run, place, plan, tuple(missing), said, source, preparation)


@dataclass(frozen=True)
class _PieceTable(Table):
    """Parquet in pieces as a table."""

    source: Pieces

    @property
    def names(self) -> list[str]:
        return list(self.source.schema.names)

    @property
    def rows(self) -> int:
        return self.source.rows

    def kind_of(self, name: str) -> Any:
        return self.source.schema.field(name).type

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        first = 0
        for piece in self.source.pieces:
            for batch in piece.batches(columns):
                yield first, batch
                first += batch.num_rows


def needed_columns(run: Run, source: Pieces, keep: Sequence[str]) -> list[str]:
    """Return the columns of a table that are read: those that training had, where they are there, and those to keep."""
    return [name for name in source.schema.names if name in keep or name in _encoded(run)]


def _encoded(run: Run) -> set[str]:
    return {column.name for column in run.preparation.encoding.columns}  # type: ignore[union-attr]


def embedded(run: Run, preparation: TablePreparation, table: Any, *, where: str) -> tuple[Any, tuple[str, ...]]:
    """Return the embedding of a table's rows, which are read by a preparation, and notes on the table."""
    table = table.select([name for name in table.column_names if name in _encoded(run)])
    data = preparation.read(InMemory(table, name=where), labelled=False)
    return embed(run.embedding, run.rows(data.train.x, where=where)), data.notes
