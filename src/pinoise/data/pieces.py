"""Parquet in pieces: a file or a partitioned folder, on any filesystem that Arrow reaches, read batch by batch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from pinoise.data.formats.parquet import common_schema, is_parquet
from pinoise.errors import UserError
from pinoise.files import expanded

PIECE_ROWS = 65_536  # a piece has at least as many, if its file has
BATCH_ROWS = 16_384  # that are in memory at once


class Place(NamedTuple):
    """A file or folder on a filesystem."""

    filesystem: Any
    path: str
    name: str  # what messages call it

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
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UserError(f"{name} cannot be reached ({str(error).partition(chr(10))[0]}).") from None
    return Place(filesystem, path, name)


class Piece(NamedTuple):
    """Neighbouring row groups of a Parquet file. Another process can read it."""

    fragment: Any
    schema: Any  # of all files together
    rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns as tables of at most ``BATCH_ROWS`` rows, in order."""
        scanner = self.fragment.scanner(
            schema=self.schema,
            columns=list(columns),
            batch_size=BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )
        try:
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{self.fragment.path} cannot be read ({' '.join(str(error).split())}).") from None


class Pieces(NamedTuple):
    """All rows of a Parquet file or folder, in the order of file names and rows."""

    place: Place
    schema: Any
    pieces: tuple[Piece, ...]
    fingerprint: str  # of the files' names, sizes and times

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(piece.rows for piece in self.pieces)


def cut(place: Place, *, rows: int = PIECE_ROWS) -> Pieces:
    """Return a Parquet file, or all Parquet files under a folder, in pieces. Only their footers are read.

    Folders called ``key=value`` are columns, as Spark and Hive write them.

    Args:
        place: the file or folder.
        rows: row groups of a file are joined until a piece has as many.
    """
    try:
        data = pa.dataset.dataset(
            _files(place),
            filesystem=place.filesystem,
            format="parquet",
            partitioning="hive",
            partition_base_dir=place.path,
        )
        # As the paths of ``open_parquet`` sort: a=b comes before a=b c, although / comes after a space.
        fragments = sorted(data.get_fragments(), key=lambda fragment: str(fragment.path).split("/"))
        schema = _schema(data, fragments)
        pieces = tuple(
            Piece(fragment.subset(row_group_ids=groups), schema, size)
            for fragment in fragments
            for groups, size in _joined([group.num_rows for group in fragment.row_groups], rows)
        )
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(
            f"{place.name} does not exist: name a Parquet file, a folder of them, or its address."
        ) from None
    except (OSError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise UserError(f"{place.name} is not Parquet ({why}): name a Parquet file or a folder of them.") from None
    if not pieces:
        raise UserError(f"{place.name} has no rows in Parquet files.")
    return Pieces(place, schema, pieces, _fingerprint(place, [str(fragment.path) for fragment in fragments]))


def _files(place: Place) -> str | list[str]:
    """Return the file, or those files of a folder that a reader of the folder takes."""
    if place.filesystem.get_file_info(place.path).type != pa.fs.FileType.Directory:
        return place.path
    below, start = place.filesystem.get_file_info(pa.fs.FileSelector(place.path, recursive=True)), len(place.inside(""))
    return [info.path for info in below if info.is_file and is_parquet(info.path[start:].split("/"))]


def _schema(data: Any, fragments: Sequence[Any]) -> Any:
    """Return the columns of all files, in types that hold those of every file; files of other columns are an error."""
    if not fragments:
        return data.schema
    parts = [dict.fromkeys(pa.dataset.get_partition_keys(fragment.partition_expression)) for fragment in fragments]
    names, schemas = zip(*((fragment.path, fragment.physical_schema) for fragment in fragments), strict=True)
    common = common_schema(names, schemas, parts)
    return pa.schema([data.schema.field(field.name) if field.name in parts[0] else field for field in common])


def _joined(sizes: Sequence[int], least: int) -> Iterator[tuple[list[int], int]]:
    """Yield the numbers of neighbouring row groups with their rows, which are at least so many but at the end.

    >>> list(_joined([2, 2, 0, 5, 1], least=4))
    [([0, 1], 4), ([2, 3], 5), ([4], 1)]
    """
    groups: list[int] = []
    for number, _ in enumerate(sizes):
        groups.append(number)
        found = sum(sizes[group] for group in groups)
        if found >= least or (number + 1 == len(sizes) and found):
            yield groups, found
            groups = []


def _fingerprint(place: Place, files: Sequence[str]) -> str:
    found = hashlib.sha256()
    for info in place.filesystem.get_file_info(list(files)):
        found.update(f"{info.path}\0{info.size}\0{info.mtime_ns}\0".encode(errors="surrogateescape"))
    return found.hexdigest()
