"""The embedding of data in parts, which one process writes, or many: each part depends on nothing but its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pinoise.data.dataset import Part, fingerprint_parts
from pinoise.data.formats.memory import InMemory
from pinoise.data.preparation import TablePreparation
from pinoise.data.source import find_source, source_files
from pinoise.data.table.cells import find_column
from pinoise.data.table.parquet import BATCH_ROWS, PIECE_ROWS, ParquetFiles, Place, find_place, open_parquet
from pinoise.errors import UserError, rows_before
from pinoise.evaluation import embed
from pinoise.evaluation.parts import Plan, begin, check_parts, write_part
from pinoise.evaluation.workers import mapped
from pinoise.training.load import Run


@dataclass(frozen=True)
class Work:
    """Data that is embedded in parts. Another process can write a part of it."""

    out: Place
    plan: Plan
    missing: tuple[int, ...]  # the parts that are still to be written
    notes: tuple[str, ...]
    width: int  # columns of the embedding
    tables: Callable[[int], Iterator[Any]]  # from the number of a part to Arrow tables of bounded size

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.plan.rows)

    def write(self, number: int) -> int:
        """Write a part, complete or not at all, and return its number."""
        write_part(self.out, number, self.tables(number))
        return number

    def write_missing(self, *, processes: int = 1, done: Callable[[int], object] = lambda _: None) -> None:
        """Write the parts that are missing, and check that every planned row is there.

        Args:
            processes: how many write at a time.
            done: called with the number of every part that was written.
        """
        for number in mapped(self.write, self.missing, processes=processes):
            done(number)
        check_parts(self.out, self.plan)


def plan_work(
    run: Run, data: str, out: str, *, keep: Sequence[str] = (), force: bool = False, progress: bool = False
) -> Work:
    """Return the work of embedding data in parts.

    Pieces of Parquet are read where they are; other data is read first, and its rows are cut into parts.

    Args:
        run: a run.
        data: a file, a folder or a name; Parquet may be at an address.
        out: the folder to write, or its address. Parts that are there already stay.
        keep: columns of a table to pass through.
        force: whether a folder that holds another embedding is begun again.
        progress: whether downloads and the decoding of images show a bar.
    """
    place = find_place(out)
    for path in [data] if "://" in data else source_files(data):
        if place.lies_in(source := find_place(str(path))):
            raise UserError(f"{place.name} lies in {source.name}, which is read: choose another folder to write.")
    make = _table_parts if "://" in data or _is_parquet(data) else partial(_row_parts, progress=progress)
    plan, notes, tables = make(run, data, tuple(dict.fromkeys(keep)))
    missing = begin(place, plan, force=force)
    return Work(place, plan, tuple(missing), notes, len(run.column_names), tables)


def _is_parquet(data: str) -> bool:
    source = find_source(data)
    return source.kind == "table" and (source.path.is_dir() or source.path.suffix == ".parquet")


@dataclass(frozen=True)
class _RowParts:
    """Rows of any kind, cut into parts."""

    run: Run
    sizes: tuple[int, ...]
    rows: Part
    where: str
    kept: Any  # columns of a table that come before the embedding, as an Arrow table

    def __call__(self, number: int) -> Iterator[Any]:
        first = sum(self.sizes[:number])
        rows = self.run.rows(self.rows.x, where=self.where)
        for start in range(first, first + self.sizes[number], BATCH_ROWS):
            some = range(start, min(start + BATCH_ROWS, first + self.sizes[number]))
            z = embed(self.run.embedding, rows, only=some)
            beside = self.kept.slice(start, len(some))
            yield pa.table([*beside.columns, *z.T], names=[*beside.column_names, *self.run.column_names])


def _row_parts(run: Run, data: str, keep: Sequence[str], *, progress: bool) -> tuple[Plan, tuple[str, ...], Any]:
    found = run.read(data, labelled=False, progress=progress)
    if found.test is not None:
        raise UserError(f"{data} has a training and a test part: write one file instead, with --part.")
    part, n = found.train, len(found.train)
    kept = kept_columns(data, keep, run.column_names)
    if part.names is not None:
        kept = pa.table({"file": pa.array(part.names, pa.string())})
    sizes = tuple(min(PIECE_ROWS, n - start) for start in range(0, n, PIECE_ROWS))
    plan = Plan(run.weights, fingerprint_parts(found), tuple(keep), sizes)
    return plan, run.new_notes(found.notes, data), _RowParts(run, sizes, part, data, kept)


@dataclass(frozen=True)
class _TableParts:
    """The pieces of Parquet files, each of which is a part."""

    run: Run
    source: ParquetFiles
    preparation: TablePreparation
    keep: tuple[str, ...]

    def __call__(self, number: int) -> Iterator[Any]:
        pieces = self.source.pieces
        first = sum(piece.rows for piece in pieces[:number])
        for table in pieces[number].batches(self.columns):
            with rows_before(first):
                z, _ = self.embedded(table)
            first += table.num_rows
            kept = [table.column(name) for name in self.keep]
            yield pa.table([*kept, *z.T], names=[*self.keep, *self.run.column_names])

    @property
    def columns(self) -> list[str]:
        """The columns that are read: those that training had, where they are there, and those to keep."""
        own = {column.name for column in self.preparation.encoding.columns}
        return [name for name in self.source.schema.names if name in self.keep or name in own]

    def embedded(self, table: Any) -> tuple[Any, tuple[str, ...]]:
        """Return the embedding of some rows, and notes on them."""
        own = {column.name for column in self.preparation.encoding.columns}
        table = table.select([name for name in table.column_names if name in own])
        where = self.source.place.name
        data = self.preparation.read(InMemory(table, name=where), labelled=False)
        return embed(self.run.embedding, self.run.rows(data.train.x, where=where)), data.notes


def _table_parts(run: Run, data: str, keep: Sequence[str]) -> tuple[Plan, tuple[str, ...], Any]:
    """Return the plan, after the first rows have been embedded as a trial."""
    if not isinstance(run.preparation, TablePreparation):
        raise UserError(f"{run.path} was trained on {run.preparation.description}: parts are written for tables only.")
    source = open_parquet(find_place(data))
    keep = _check_kept(keep, source.schema.names, data, run.column_names)
    encoding = run.preparation.encoding.for_dates_of(source.table())
    parts = _TableParts(run, source, TablePreparation(encoding), keep)
    first = next(source.pieces[0].batches(parts.columns))
    notes = tuple(f"in the first {first.num_rows} rows: {sentence}" for sentence in parts.embedded(first)[1])
    plan = Plan(run.weights, source.fingerprint, keep, tuple(piece.rows for piece in source.pieces))
    return plan, notes, parts


def kept_columns(data: str, keep: Sequence[str], own: Sequence[str]) -> Any:
    """Return columns of a table to pass through as they stand there, as an Arrow table; without any, an empty one.

    Args:
        data: a file or folder.
        keep: names of columns.
        own: the columns of the embedding, of which none can be kept.
    """
    if not keep:
        return pa.table({})
    source = find_source(data)
    if source.kind != "table":
        raise UserError(f"--keep names columns of a table (.csv, .parquet), and {data} is none.")
    table = source.table()
    columns = _check_kept(keep, table.names, data, own)
    return pa.concat_tables([batch for _, batch in table.batches(columns)])


def _check_kept(keep: Sequence[str], names: Sequence[str], data: str, own: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(find_column(name, names, where=data) for name in dict.fromkeys(keep))
    for name in columns:
        if name in own:
            raise UserError(f"--keep {name}: the embedding has this column already, standardised; leave it out.")
    return columns
