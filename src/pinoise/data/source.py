"""What a user names or holds: a data set of the catalogue, a file, a folder, or an object in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pinoise.data.catalogue import entries, is_name, locate
from pinoise.data.catalogue.loading import load
from pinoise.data.dataset import Dataset, RawArrays
from pinoise.data.formats.arrays import read_npy, read_npz
from pinoise.data.formats.binary import (
    holds_cifar,
    holds_idx,
    holds_stl10,
    read_cifar,
    read_idx_folder,
    read_idx_samples,
    read_stl10,
)
from pinoise.data.formats.extensions import data_name, existing_path, file_format
from pinoise.data.formats.memory import InMemory
from pinoise.data.formats.svmlight import read_svmlight
from pinoise.data.images.reading import read_image_folder
from pinoise.data.options import ReadOptions
from pinoise.data.table.batches import Table, csv_table
from pinoise.data.table.frames import is_table
from pinoise.data.table.parquet import find_place, open_parquet, parquet_files
from pinoise.errors import UserError, unknown_choice
from pinoise.files import expanded

SourceKind = Literal["catalogue", "table", "array", "images"]
ArrayReader = Callable[[Path], RawArrays]

_FILE_READERS: dict[str, ArrayReader] = {"idx": read_idx_samples, "npy": read_npy, "npz": read_npz}


@dataclass(frozen=True)
class Source:
    """A source whose kind is known; each kind has the method that reads it.

    >>> find_source("digits").kind, find_source([[1, 2], [3, 4]]).kind
    ('catalogue', 'array')
    """

    kind: SourceKind
    name: str  # of the data set
    where: str  # what messages call it
    path: Path = Path()  # of a file or folder
    held: InMemory | None = None  # samples in memory

    def dataset(
        self, *, label: str | int | None = None, size: tuple[int, int] | None = None, progress: bool = False
    ) -> Dataset:
        """Load a data set of the catalogue; its labels are known, so naming their column is an error."""
        if label is not None:
            raise UserError(f"--label {label!r} is for files: the labels of {self.name!r} are known.")
        return load(self.name, size=size, progress=progress)

    def table(self) -> Table:
        """Open a table as a repeatable stream of batches."""
        if self.held is not None:
            return self.held.table()
        if self.path.is_dir() or file_format(self.path) == "parquet":
            return open_parquet(find_place(str(self.path))).table()
        return csv_table(self.path)

    def arrays(self, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
        """Read arrays; ``n_features`` and ``first_index`` are those of the training file, for svmlight."""
        if self.held is not None:
            return self.held.arrays()
        reader = _folder_reader(self.path) if self.path.is_dir() else _FILE_READERS.get(file_format(self.path))
        return reader(self.path) if reader else read_svmlight(self.path, n_features=n_features, first_index=first_index)

    def images(self, options: ReadOptions, *, progress: bool = False) -> RawArrays:
        """Read a folder of images, whose labels are its subfolders."""
        if options.label is not None:
            raise UserError(
                f"{self.where} is a folder of images, whose subfolders are the classes: "
                f"leave out label={options.label!r}."
            )
        return read_image_folder(self.path, options, progress=progress)


def find_source(given: object) -> Source:
    """Return the source that is meant: text is a name of the catalogue or a path, other objects hold samples."""
    if isinstance(given, str):
        if is_name(given):
            return Source("catalogue", given, f"the data set {given!r}")
        path = Path(given)
        if not (path.suffix or "/" in given or os.sep in given or _may_exist(path)):
            raise unknown_choice("data set", given, [entry.name for entry in entries()])
        given = path
    if isinstance(given, Path):
        path = existing_path(given)
        return Source(_kind_of(path), data_name(path), str(path), path=path)
    held = given if isinstance(given, InMemory) else InMemory(given)
    return Source("table" if is_table(held.X) else "array", held.name, held.name, held=held)


def source_files(source: str) -> list[Path]:
    """Return the file or folder of a source, or the files of a data set that are on this machine.

    >>> source_files("digits"), source_files("photos/") == [Path("photos")]
    ([], True)
    """
    if is_name(source):
        return [path for path in locate(source).values() if path is not None]
    return [expanded(source)]


def _may_exist(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, for one; who opens it says why
        return True


def _kind_of(path: Path) -> SourceKind:
    if path.is_dir():
        if _folder_reader(path) is not None:
            return "array"
        return "table" if parquet_files(find_place(str(path))) else "images"
    return "table" if file_format(path) in ("csv", "parquet") else "array"


def _folder_reader(folder: Path) -> ArrayReader | None:
    """Return the reader of an unpacked MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 or STL-10; None for other folders."""
    known = ((holds_idx, read_idx_folder), (holds_cifar, read_cifar), (holds_stl10, read_stl10))
    return next((reader for holds, reader in known if holds(folder)), None)
