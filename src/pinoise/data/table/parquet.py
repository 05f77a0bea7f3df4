"""Parquet: a file or a partitioned folder, on any filesystem that Arrow reaches, as a stream or piece by piece."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from pinoise.data.table.batches import Table
from pinoise.data.table.cells import checked
from pinoise.errors import UserError, counted, damage_named, listed
from pinoise.files import expanded

PIECE_ROWS = 65_536  # a piece has at least as many, if its file has
BATCH_ROWS, BATCH_VALUES, LEAST_ROWS = 16_384, 1 << 21, 1024  # that are in memory at once

_BUFFER = 1 << 18  # bytes of each column read ahead, so that a long row group is never read whole
_DAMAGE = (OSError, ValueError, pa.ArrowException)


class Place(NamedTuple):
    """A file or folder on a filesystem."""

    filesystem: Any
    path: str
    name: str  # what messages call it

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return isinstance(self.filesystem, pa.fs.LocalFileSystem)

    @property
    def is_folder(self) -> bool:
        """Whether there is such a folder."""
        return bool(self.filesystem.get_file_info(self.path).type == pa.fs.FileType.Directory)

    def lies_in(self, folder: Place) -> bool:
        """Whether this place is another, or is in it."""
        same = type(self.filesystem) is type(folder.filesystem)
        return same and f"{self.path}/".startswith(f"{folder.path.rstrip('/')}/")

    def inside(self, name: str) -> str:
        """Return the path of a file in this folder."""
        return f"{self.path.rstrip('/')}/{name}"


def find_place(name: str) -> Place:
    """Return the place that a path or an address such as ``s3://bucket/folder`` names. It need not exist.

    >>> find_place("file:///data/people").path, find_place("people").name
    ('/data/people', 'people')
    >>> find_place("gopher://people")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: gopher://people cannot be reached (Unrecognized filesystem type in URI: gopher://people).
    """
    if "://" not in name:
        return Place(pa.fs.LocalFileSystem(), str(expanded(name).absolute()), name)
    try:
        filesystem, path = pa.fs.FileSystem.from_uri(name)
    except _DAMAGE as error:
        raise UserError(f"{name} cannot be reached ({str(error).partition(chr(10))[0]}).") from None
    return Place(filesystem, path, name)


class Piece(NamedTuple):
    """Neighbouring row groups of a Parquet file. Another process can read it."""

    fragment: Any  # the whole file: Arrow pickles the row groups of a part of it in any order
    groups: tuple[int, ...]
    schema: Any  # of all files together
    rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns as tables of bounded size, in order."""
        rows = max(LEAST_ROWS, min(BATCH_ROWS, BATCH_VALUES // max(1, len(columns))))
        with damage_named(self.fragment.path, _DAMAGE):
            how = {"use_buffered_stream": True, "buffer_size": _BUFFER, "pre_buffer": False}
            parquet = pa.dataset.ParquetFragmentScanOptions(**how)
            little = {"batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
            for batch in self.fragment.subset(row_group_ids=list(self.groups)).to_batches(
                self.schema, columns=list(columns), fragment_scan_options=parquet, **little
            ):
                if batch.num_rows:
                    yield checked(pa.Table.from_batches([batch]), where=self.fragment.path)


class ParquetFiles(NamedTuple):
    """All rows of a Parquet file or folder, in the order of file names and rows."""

    place: Place
    schema: Any
    pieces: tuple[Piece, ...]
    paths: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """A checksum of the files' names, sizes and times of change."""
        found = hashlib.sha256()
        for info in self.place.filesystem.get_file_info(list(self.paths)):
            found.update(f"{info.path}\0{info.size}\0{info.mtime_ns}\0".encode(errors="surrogateescape"))
        return found.hexdigest()

    def table(self) -> Table:
        """Return the rows as a stream."""
        names, rows = tuple(self.schema.names), sum(piece.rows for piece in self.pieces)
        files = tuple(map(Path, self.paths)) if self.place.is_local else ()
        notes = (f"read {counted(len(self.paths), 'file')} of the folder as one table",) if self.place.is_folder else ()
        kinds, size = dict(zip(names, self.schema.types, strict=True)), 8 * rows * len(names)

        def read(columns: Sequence[str]) -> Iterator[Any]:
            return (batch for piece in self.pieces for batch in piece.batches(columns))

        return Table(names, self.place.name, read, rows, size, kinds, notes=notes, files=files)


def open_parquet(place: Place) -> ParquetFiles:
    """Open a Parquet file, or all Parquet files under a folder; only their footers are read.

    Folders called ``key=value`` are columns, as Spark and Hive write them.
    """
    if place.filesystem.get_file_info(place.path).type == pa.fs.FileType.NotFound:
        raise UserError(f"{place.name} does not exist: name a Parquet file, a folder of them, or its address.")
    files = parquet_files(place)
    with damage_named(place.name, _DAMAGE):
        try:
            how = {"format": "parquet", "partitioning": "hive", "partition_base_dir": place.path}
            data = pa.dataset.dataset(files, filesystem=place.filesystem, **how)
        except pa.ArrowTypeError as error:
            what = "the key=value folders are of another type in its files"
            raise UserError(f"{place.name}: {what} ({error}).") from None
        # As paths sort: a=b comes before a=b c, although / comes after a space.
        fragments = sorted(data.get_fragments(), key=lambda fragment: str(fragment.path).split("/"))
        schema = _schema(data, fragments)
        pieces = tuple(
            Piece(fragment, tuple(groups), schema, size)
            for fragment in fragments
            for groups, size in _joined([group.num_rows for group in fragment.row_groups], PIECE_ROWS)
        )
    if not pieces or not schema.names:
        raise UserError(f"{place.name} has no rows.")
    return ParquetFiles(place, schema, pieces, tuple(str(fragment.path) for fragment in fragments))


def parquet_files(place: Place) -> list[str]:
    """Return the file, or those of a folder and the ones below it; hidden ones and those with _ are left out."""
    if not place.is_folder:
        return [place.path]
    try:
        infos = place.filesystem.get_file_info(pa.fs.FileSelector(place.path, recursive=True))
    except OSError as error:  # such as links in a circle
        raise UserError(f"{place.name} holds folders that cannot be read: name a folder of data alone.") from error
    paths = [info.path for info in infos if info.is_file and info.path.lower().endswith(".parquet")]
    start = len(place.inside(""))
    return [path for path in paths if not any(part.startswith((".", "_")) for part in path[start:].split("/"))]


def _schema(data: Any, fragments: Sequence[Any]) -> Any:
    """Return the columns of all files, in types that hold those of every file; files of other columns are an error."""
    if not fragments:
        return data.schema
    own = [fragment.physical_schema.remove_metadata() for fragment in fragments]
    keys = [list(pa.dataset.get_partition_keys(fragment.partition_expression)) for fragment in fragments]
    first = {*own[0].names, *keys[0]}
    for fragment, schema, part in zip(fragments, own, keys, strict=True):
        if strange := sorted(first ^ {*schema.names, *part} | set(keys[0]) ^ set(part)):
            what = f"has other columns or key=value folders than {fragments[0].path}"
            raise UserError(f"{fragment.path} {what} ({listed(strange)}): give files of one table.")
    try:
        whole = pa.unify_schemas(own, promote_options="permissive")
    except pa.ArrowException as error:
        raise UserError(f"{fragments[0].path} and the files beside it: {error}: write it alike in all files.") from None
    fields = [field for field in whole if field.name not in keys[0]]
    return pa.schema([*fields, *(data.schema.field(name) for name in keys[0])])


def _joined(sizes: Sequence[int], least: int) -> Iterator[tuple[list[int], int]]:
    """Yield the numbers of neighbouring row groups with their rows, which are at least so many but at the end.

    >>> list(_joined([2, 2, 0, 5, 1], least=4))
    [([0, 1], 4), ([2, 3], 5), ([4], 1)]
    """
    start = 0
    for stop in range(1, len(sizes) + 1):
        found = sum(sizes[start:stop])
        if found >= least or (stop == len(sizes) and found):
            yield list(range(start, stop)), found
            start = stop
