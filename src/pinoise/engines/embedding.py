"""The embedding of data in parts, which one process writes, or many: each part depends on nothing but its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pinoise.data.dataset import fingerprint_parts
from pinoise.data.formats.memory import InMemory
from pinoise.data.preparation import TablePreparation
from pinoise.data.rows import Rows
from pinoise.data.source import find_source, source_files
from pinoise.data.table.cells import find_column
from pinoise.data.table.parquet import BATCH_ROWS, PIECE_ROWS, ParquetFiles, Place, find_place, open_parquet
from pinoise.errors import UserError, rows_before
from pinoise.evaluation import embed
from pinoise.evaluation.parts import Plan, begin, check_parts, write_part
from pinoise.evaluation.workers import mapped
from pinoise.training.load import Run

Batches = Callable[[int], Iterator[tuple[Any, np.ndarray]]]
"""From the number of a part to batches: columns to keep, as an Arrow table, and the embedding of the same rows."""


@dataclass(frozen=True)
class Work:
    """Data that is embedded in parts. Another process can write a part of it."""

    out: Place
    plan: Plan
    missing: tuple[int, ...]  # the parts that are still to be written
    notes: tuple[str, ...]
    columns: tuple[str, ...]  # of the embedding
    batches: Batches

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns of the embedding."""
        return sum(self.plan.rows), len(self.columns)

    def tables(self, number: int) -> Iterator[Any]:
        """Yield a part as Arrow tables of bounded size."""
        for kept, z in self.batches(number):
            yield pa.table([*kept.columns, *z.T], names=[*kept.column_names, *self.columns])

    def write(self, number: int) -> int:
        """Write a part, complete or not at all, and return its number."""
        write_part(self.out, number, self.tables(number))
        return number

    def write_missing(
        self,
        *,
        processes: int | None = 1,
        map_: Callable[..., Iterator[int]] = mapped,
        done: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Write the parts that are missing, and check that every planned row is there.

        Args:
            processes: how many write at a time.
            map_: what has processes do the work, such as ``mapped_on_ray``.
            done: called with the number of every part that was written.
        """
        for number in map_(self.write, self.missing, processes=processes):
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
    make = _table_batches if "://" in data or _is_parquet(data) else partial(_row_batches, progress=progress)
    plan, notes, batches = make(run, data, tuple(dict.fromkeys(keep)))
    return Work(place, plan, tuple(begin(place, plan, force=force)), notes, run.column_names, batches)


def _is_parquet(data: str) -> bool:
    source = find_source(data)
    return source.kind == "table" and (source.path.is_dir() or source.path.suffix == ".parquet")


def _row_batches(run: Run, data: str, keep: Sequence[str], *, progress: bool) -> tuple[Plan, tuple[str, ...], Batches]:
    """Cut rows of any kind into parts."""
    found = run.read(data, labelled=False, progress=progress)
    if found.test is not None:
        raise UserError(f"{data} has a training and a test part: write one file instead, with --part.")
    kept = kept_columns(data, keep, run.column_names)
    if found.train.names is not None:
        kept = pa.table({"file": pa.array(found.train.names, pa.string())})
    n, rows = len(found.train), run.rows(found.train.x, where=data)
    sizes = tuple(min(PIECE_ROWS, n - start) for start in range(0, n, PIECE_ROWS))
    plan = Plan(run.weights, fingerprint_parts(found), tuple(keep), sizes)
    return plan, run.new_notes(found.notes, data), partial(_embedded_rows, run, rows, kept, sizes)


def _embedded_rows(
    run: Run, rows: Rows, kept: Any, sizes: Sequence[int], number: int
) -> Iterator[tuple[Any, np.ndarray]]:
    first, stop = sum(sizes[:number]), sum(sizes[: number + 1])
    for start in range(first, stop, BATCH_ROWS):
        some = range(start, min(start + BATCH_ROWS, stop))
        yield kept.slice(start, len(some)), embed(run.embedding, rows, only=some)


def _table_batches(run: Run, data: str, keep: Sequence[str]) -> tuple[Plan, tuple[str, ...], Batches]:
    """Take the pieces of Parquet files as parts, after the first rows have been embedded as a trial."""
    if not isinstance(run.preparation, TablePreparation):
        raise UserError(f"{run.path} was trained on {run.preparation.description}: parts are written for tables only.")
    source = open_parquet(find_place(data))
    keep = _check_kept(keep, source.schema.names, data, run.column_names)
    preparation = TablePreparation(run.preparation.encoding.for_dates_of(source.table()))
    first = next(source.pieces[0].batches(_own_columns(preparation, source)))
    _, found = _embedded_table(run, preparation, first, data)
    notes = tuple(f"in the first {first.num_rows} rows: {sentence}" for sentence in found)
    plan = Plan(run.weights, source.fingerprint, keep, tuple(piece.rows for piece in source.pieces))
    return plan, notes, partial(_embedded_piece, run, preparation, source, keep)


def _embedded_piece(
    run: Run, preparation: TablePreparation, source: ParquetFiles, keep: Sequence[str], number: int
) -> Iterator[tuple[Any, np.ndarray]]:
    own = _own_columns(preparation, source)
    first = sum(piece.rows for piece in source.pieces[:number])
    for table in source.pieces[number].batches(list(dict.fromkeys([*own, *keep]))):
        with rows_before(first):
            z, _ = _embedded_table(run, preparation, table.select(own), source.place.name)
        yield table.select(list(keep)), z
        first += table.num_rows


def _own_columns(preparation: TablePreparation, source: ParquetFiles) -> list[str]:
    """Return the columns that training had, where they are there."""
    own = {column.name for column in preparation.encoding.columns}
    return [name for name in source.schema.names if name in own]


def _embedded_table(
    run: Run, preparation: TablePreparation, table: Any, where: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the embedding of some rows, and notes on them."""
    data = preparation.read(InMemory(table, name=where), labelled=False)
    return embed(run.embedding, run.rows(data.train.x, where=where)), data.notes


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
    return pa.concat_tables(table.read(_check_kept(keep, table.names, data, own)))


def _check_kept(keep: Sequence[str], names: Sequence[str], data: str, own: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(find_column(name, names, where=data) for name in dict.fromkeys(keep))
    for name in columns:
        if name in own:
            raise UserError(f"--keep {name}: the embedding has this column already, standardised; leave it out.")
    return columns
