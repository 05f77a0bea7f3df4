"""Parquet: one file, or a folder of files with the same columns, read whole or piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from pinoise.data.formats.arrow import checked
from pinoise.data.formats.raw import RawTable, Table, check_names
from pinoise.data.formats.unchanged import FileState, states_of
from pinoise.data.messages import counted, damage_named, listed
from pinoise.errors import UserError

PIECE_VALUES = 1 << 21  # cells read at a time
LEAST_ROWS = 1024  # read at a time, of however many columns
PIECE_BYTES = 1 << 27  # of cells read at a time, which may be long texts
_BUFFER = 1 << 18  # bytes of each column read ahead, so that a long row group is never read whole
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what engines call the folder of rows without one
_WHOLE = re.compile(r"-?[0-9]{1,18}")  # a number that int64 holds
_PARQUET = (OSError, pa.ArrowException)


@dataclass(frozen=True)
class ParquetFiles(Table):
    """The rows of Parquet files, one file after another in the order of their names.

    A folder ``town=Rome`` gives its rows the column ``town``, as Hive and Spark write partitions.
    """

    where: str
    states: tuple[FileState, ...]
    parts: tuple[dict[str, str | None], ...]  # of each file, the columns that its folders name
    schema: Any
    counts: tuple[int, ...]  # rows of each file
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.counts)

    def kind_of(self, name: str) -> Any:
        """Return the Arrow type of a column."""
        return self.schema.field(name).type

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield tables of bounded size with their first row; a file that has changed since is an error."""
        first = 0
        step = max(LEAST_ROWS, PIECE_VALUES // max(1, len(columns)))
        for number, state in enumerate(self.states):
            before = first
            for batch in self._batches(number, columns, step):
                yield first, batch
                first += len(batch)
            if first - before != self.counts[number]:
                raise state.changed()
            state.check()

    def _batches(self, number: int, columns: Sequence[str], step: int) -> Iterator[Any]:
        path = self.states[number].path
        own = [name for name in columns if name not in self.parts[number]]
        with damage_named(path, _PARQUET):
            self.states[number].check()
            with pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
                step = max(1, min(step, PIECE_BYTES // _row_bytes(file.metadata)))
                for batch in file.iter_batches(step, columns=own, use_threads=False):
                    yield self._typed(checked(pa.Table.from_batches([batch]), where=path), number, columns)

    def _typed(self, table: Any, number: int, columns: Sequence[str]) -> Any:
        """Return some columns of a file in the types that all files share, with those that its folders name."""
        cells = []
        for name in columns:
            kind = self.kind_of(name)
            if name in self.parts[number]:
                value = pa.scalar(self.parts[number][name], pa.string()).cast(kind)
                cells.append(pa.chunked_array([pa.repeat(value, len(table))]))
            else:
                column = table.column(name)
                # A whole number among fractions may have more digits than they can have, in whatever file it is.
                safe = not pa.types.is_floating(kind)
                cells.append(column if column.type == kind else column.cast(kind, safe=safe))
        return pa.table(cells, names=list(columns))


def open_parquet(path: Path) -> ParquetFiles:
    """Open a Parquet file or a folder of them; their columns must be the same, in any order.

    Args:
        path: the file, or a folder with files ``*.parquet`` in it or in folders below it.
    """
    files = parquet_files(path) if path.is_dir() else [path]
    schemas, counts, states = [], [], []
    for file in files:
        states += states_of([file])
        with damage_named(file, _PARQUET), pyarrow.parquet.ParquetFile(file) as opened:
            schemas.append(opened.schema_arrow.remove_metadata())
            counts.append(opened.metadata.num_rows)
        check_names(schemas[-1].names, where=file)
    parts = [_partition(file.relative_to(path)) if path.is_dir() else {} for file in files]
    schema = common_schema(files, schemas, parts)
    if sum(counts) == 0 or not schema.names:
        raise UserError(f"{path} has no rows.")
    notes = (f"read {counted(len(files), 'file')} of the folder as one table",) if path.is_dir() else ()
    return ParquetFiles(str(path), tuple(states), tuple(parts), schema, tuple(counts), notes)


def read_parquet(path: Path) -> RawTable:
    """Read a Parquet file, or a folder of them, into memory."""
    files = open_parquet(path)
    tables = []
    for number, state in enumerate(files.states):
        own = [name for name in files.names if name not in files.parts[number]]
        with damage_named(state.path, _PARQUET), pyarrow.parquet.ParquetFile(state.path) as file:
            tables.append(files._typed(file.read(columns=own), number, files.names))
    return RawTable(checked(pa.concat_tables(tables), where=path), notes=files.notes)


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of those below it, sorted; hidden ones and those with _ are left out."""
    found = sorted(folder.rglob("*"))
    return [file for file in found if is_parquet(file.relative_to(folder).parts) and file.is_file()]


def is_parquet(parts: Sequence[str]) -> bool:
    """Whether a file of a folder, given by the parts of its path in there, is one of the folder's table.

    >>> is_parquet(["year=2024", "a.parquet"]), is_parquet(["readme.txt"]), is_parquet(["_old", "a.parquet"])
    (True, False, False)
    """
    return parts[-1].endswith(".parquet") and not any(part.startswith((".", "_")) for part in parts)


def _row_bytes(about: Any) -> int:
    """Return the bytes of a row of all columns, of the row group with the longest ones; 1 at least."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    return max((group.total_byte_size // group.num_rows for group in groups if group.num_rows), default=0) or 1


def _partition(file: Path) -> dict[str, str | None]:
    """Return the columns that the folders of a file name.

    >>> _partition(Path("town=New%20York/year=2024/a.parquet"))
    {'town': 'New York', 'year': '2024'}
    """
    named = (part.partition("=") for part in file.parts[:-1])
    values = {name: unquote(value) for name, equals, value in named if name and equals}
    return {name: None if value == _NO_VALUE else value for name, value in values.items()}


def common_schema(
    files: Sequence[str | Path], schemas: Sequence[Any], parts: Sequence[Mapping[str, str | None]]
) -> Any:
    """Return the columns that all files share; a file with other columns is an error that names it.

    Args:
        files: what messages call them.
        schemas: of each file.
        parts: of each file, the columns that its folders name.
    """
    first = {*schemas[0].names, *parts[0]}
    for file, schema, part in zip(files, schemas, parts, strict=True):
        names = {*schema.names, *part}
        if names != first:
            lacks, extra = sorted(first - names), sorted(names - first)
            how = [f"lacks {listed(lacks)}"] if lacks else []
            how += [f"has {listed(extra)} besides"] if extra else []
            raise UserError(
                f"{file} has other columns than {files[0]}: it {' and '.join(how)}; give files of one table."
            )
        if part.keys() != parts[0].keys():
            raise UserError(f"{file} lies in other key=value folders than {files[0]}: give files of one table.")
    own = [field for field in schemas[0] if field.name not in parts[0]]
    fields = [pa.field(field.name, _common_type(files, schemas, field)) for field in own]
    for name in parts[0]:
        values = [part[name] for part in parts]
        whole = all(value is None or _WHOLE.fullmatch(value) for value in values)
        fields.append(pa.field(name, pa.int64() if whole and any(values) else pa.string()))
    return pa.schema(fields)


def _common_type(files: Sequence[str | Path], schemas: Sequence[Any], field: Any) -> Any:
    """Return the type that holds a column of all files."""
    kind = field.type
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        other = schema.field(field.name).type
        if other == kind:
            continue
        try:
            joined = pa.unify_schemas(
                [pa.schema([("x", kind)]), pa.schema([("x", other)])], promote_options="permissive"
            )
        except pa.ArrowException:
            raise UserError(
                f"{file}: column {field.name!r} is of type {other}, but in {files[0]} of type {kind}: write it alike "
                "in all files."
            ) from None
        kind = joined.field("x").type
    return kind
