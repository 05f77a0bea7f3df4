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
from pinoise.data.rows import Rows
from pinoise.data.source import find_source, source_files
from pinoise.data.table.cells import find_column
from pinoise.data.table.parquet import BATCH_ROWS, PIECE_ROWS, ParquetFiles, Place, find_place, open_parquet
from pinoise.errors import UserError, rows_among
from pinoise.evaluation.embedding import embed, table_of
from pinoise.evaluation.parts import Plan, begin, check_parts, write_part
from pinoise.evaluation.workers import mapped
from pinoise.model import Model

Tables = Callable[[int], Iterator[Any]]
"""From the number of a part to Arrow tables of bounded size: what is kept of its rows, and their embedding."""


@dataclass(frozen=True)
class Work:
    """Data that is embedded in parts. Another process can write a part of it."""

    out: Place
    plan: Plan
    missing: tuple[int, ...]  # the parts that are still to be written
    notes: tuple[str, ...]
    tables: Tables

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
    run: Model, data: str, out: str, *, keep: Sequence[str] = (), force: bool = False, progress: bool = False
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
    plan_parts = _plan_pieces if "://" in data or _is_parquet(data) else partial(_plan_rows, progress=progress)
    plan, notes, tables = plan_parts(run, data, keep)
    return Work(place, plan, tuple(begin(place, plan, force=force)), notes, tables)


def _is_parquet(data: str) -> bool:
    source = find_source(data)
    return source.kind == "table" and (source.path.is_dir() or source.path.suffix == ".parquet")


def _plan_rows(run: Model, data: str, keep: Sequence[str], *, progress: bool) -> tuple[Plan, tuple[str, ...], Tables]:
    """Cut rows of any kind into parts."""
    found = run.read(data, labelled=False, progress=progress)
    if found.test is not None:
        raise UserError(f"{data} has a training and a test part: write one file instead, with --part.")
    kept, rows = columns_beside(data, found.train, keep, run.column_names), run.rows(found.train.x, where=data)
    sizes = tuple(min(PIECE_ROWS, len(rows) - start) for start in range(0, len(rows), PIECE_ROWS))
    plan = Plan(run.weights, fingerprint_parts(found), tuple(keep), sizes)
    return plan, run.new_notes(found.notes, data), partial(_embedded_rows, run, rows, kept, sizes)


def _embedded_rows(run: Model, rows: Rows, kept: Any, sizes: Sequence[int], number: int) -> Iterator[Any]:
    first, stop = sum(sizes[:number]), sum(sizes[: number + 1])
    for start in range(first, stop, BATCH_ROWS):
        some = range(start, min(start + BATCH_ROWS, stop))
        yield table_of(embed(run.embedding, rows, some), run.column_names, kept.slice(start, len(some)))


def _plan_pieces(run: Model, data: str, keep: Sequence[str]) -> tuple[Plan, tuple[str, ...], Tables]:
    """Take the pieces of Parquet files as parts, after a look at the first rows."""
    if not isinstance(run.preparation, TablePreparation):
        raise UserError(f"{run.path} was trained on {run.preparation.description}: parts are written for tables only.")
    source = open_parquet(find_place(data))
    keep = _check_kept(data, keep, source.schema.names, run.column_names)
    preparation = run.preparation
    known = {column.name for column in preparation.encoding.columns}
    own = [name for name in source.schema.names if name in known]
    first = next(source.pieces[0].batches(own))
    found = preparation.read(InMemory(first, name=data), labelled=False).notes
    notes = tuple(f"in the first {first.num_rows} rows: {sentence}" for sentence in found)
    plan = Plan(run.weights, source.fingerprint, keep, tuple(piece.rows for piece in source.pieces))
    return plan, notes, partial(_embedded_piece, run, preparation, source, own, keep)


def _embedded_piece(
    run: Model, preparation: TablePreparation, source: ParquetFiles, own: list[str], keep: Sequence[str], number: int
) -> Iterator[Any]:
    first, where = sum(piece.rows for piece in source.pieces[:number]), source.place.name
    for table in source.pieces[number].batches(list(dict.fromkeys([*own, *keep]))):
        with rows_among(range(first, first + table.num_rows)):
            x = preparation.read(InMemory(table.select(own), name=where), labelled=False).train.x
            z = embed(run.embedding, run.rows(x, where=where))
        yield table_of(z, run.column_names, table.select(list(keep)))
        first += table.num_rows


def columns_beside(data: str, part: Part, keep: Sequence[str], own: Sequence[str]) -> Any:
    """Return what stands beside the embedding of a part of data, as an Arrow table.

    Args:
        data: a file, a folder or a name.
        part: its rows; those of a folder of images have the name of their file.
        keep: columns of a table, which pass through as they stand there.
        own: the columns of the embedding, of which none can be kept.
    """
    if not keep:
        return pa.table({} if part.names is None else {"file": pa.array(part.names, pa.string())})
    source = find_source(data)
    if source.kind != "table":
        raise UserError(f"--keep names columns of a table (.csv, .parquet), and {data} is none.")
    table = source.table()
    return pa.concat_tables(table.read(_check_kept(data, keep, table.names, own)))


def _check_kept(data: str, keep: Sequence[str], names: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(find_column(name, names, where=data) for name in keep))
    for name in columns:
        if name in own:
            raise UserError(f"--keep {name}: the embedding has this column already, standardised; leave it out.")
    return columns
