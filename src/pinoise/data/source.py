"""What a user names or holds: a data set of the catalogue, a file, a folder, or an object in memory.

Data sets by name, and the formats in which well-known ones are published, are behind the import paths in ``choices``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from pinoise.choices import CATALOGUE, FORMATS, imported
from pinoise.data.dataset import Dataset, RawArrays
from pinoise.data.formats.arrays import read_npy, read_npz
from pinoise.data.formats.memory import InMemory, is_table
from pinoise.data.formats.svmlight import read_svmlight
from pinoise.data.table.batches import Table, csv_table
from pinoise.data.table.parquet import find_place, open_parquet, parquet_files
from pinoise.errors import UserError, unknown_choice
from pinoise.files import expanded, open_regular

ArrayReader = Callable[[Path], RawArrays]
FileFormat = Literal["csv", "parquet", "npy", "npz", "svmlight", "idx"]

EXTENSIONS: dict[FileFormat, tuple[str, ...]] = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet",),
    "npy": (".npy",),
    "npz": (".npz",),
    "svmlight": (".svm", ".svmlight", ".libsvm", ".txt", ".t"),  # .t is LIBSVM's name for a test file
    "idx": (".idx",),
}
COMPRESSED = (".gz", ".bz2")
MAY_BE_COMPRESSED = ("csv", "svmlight", "idx")

# MNIST's files have no extension: train-images-idx3-ubyte, or .idx3-ubyte as they are sometimes called.
_IDX = re.compile(r".*[-.]idx\d+-ubyte", re.IGNORECASE)

SourceKind = Literal["catalogue", "table", "array", "images"]


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
        readers: dict[str, ArrayReader] = {
            "npy": read_npy,
            "npz": read_npz,
            "svmlight": partial(read_svmlight, n_features=n_features, first_index=first_index),
        }
        reader = published_reader(self.path) or readers[file_format(self.path)]
        return reader(self.path)


def find_source(given: object) -> Source:
    """Return the source that is meant: text is a name of the catalogue or a path, other objects hold samples."""
    if isinstance(given, str):
        if is_name(given):
            return Source("catalogue", given, f"the data set {given!r}")
        path = Path(given)
        if not (path.suffix or "/" in given or os.sep in given or os.path.lexists(path)):
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


def _kind_of(path: Path) -> SourceKind:
    if published_reader(path) is not None:
        return "array"
    if path.is_dir():
        return "table" if parquet_files(find_place(str(path))) else "images"
    return "table" if file_format(path) in ("csv", "parquet") else "array"


def existing_path(path: str | Path) -> Path:
    """Return the path of a folder, or of a file that is not empty and can be opened; raise a clear error otherwise."""
    path = expanded(path)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"the name {str(path)!r} is not UTF-8, so a run could not note it: rename the file.") from None
    try:
        if path.is_dir():
            return path
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
    except FileNotFoundError as error:
        raise UserError(f"the file {path} does not exist.") from error
    except (OSError, ValueError) as error:  # such as a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"the file {path} cannot be opened: {reason}.") from error
    if size == 0:
        raise UserError(f"the file {path} is empty.")
    return path


def file_format(path: Path) -> FileFormat:
    """Return the format that a file's extension stands for.

    >>> file_format(Path("adult.csv.gz")), file_format(Path("epsilon_normalized.t.bz2"))
    ('csv', 'svmlight')
    >>> file_format(Path("t10k-images-idx3-ubyte.gz"))
    'idx'
    """
    name = uncompressed_name(path)
    if _IDX.fullmatch(name):
        return "idx"
    ending, is_compressed = Path(name).suffix.lower(), name != path.name
    if is_compressed and ending == "":  # LIBSVM publishes its training files as name.bz2
        return "svmlight"
    for found, endings in EXTENSIONS.items():
        if ending in endings and (not is_compressed or found in MAY_BE_COMPRESSED):
            return found
    allowed = f"{', '.join(chain(*EXTENSIONS.values()))}; text and IDX also with {' or '.join(COMPRESSED)}"
    raise UserError(f"{path} has an unknown extension: allowed are {allowed}.")


def uncompressed_name(path: Path) -> str:
    """Return the name of a file without the extension of its compression.

    >>> uncompressed_name(Path("adult.csv.gz")), uncompressed_name(Path("adult.csv"))
    ('adult.csv', 'adult.csv')
    """
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def data_name(path: Path) -> str:
    """Return a file's name without its extensions, or a folder's name.

    >>> data_name(Path("adult.csv.gz")), data_name(Path("epsilon.t.bz2"))
    ('adult', 'epsilon.t')
    """
    if path.is_dir():
        return path.resolve().name
    name = Path(uncompressed_name(path))
    return name.name if name.suffix == ".t" else name.stem


def entries() -> tuple[Any, ...]:
    """Return what is known of every set, those that need no file first.

    >>> [entry.name for entry in entries()][:4]
    ['digits', 'wine', 'breast_cancer', 'har']
    """
    return tuple(imported(CATALOGUE["entries"])())


def is_name(source: object) -> bool:
    """Whether this names a data set.

    >>> is_name("digits"), is_name("my.csv")
    (True, False)
    """
    # No name has a dot or a slash, so files need no look into the catalogue.
    return isinstance(source, str) and source.isidentifier() and any(source == entry.name for entry in entries())


def locate(name: str) -> dict[str, Path | None]:
    """Return where each file of a data set is on this machine, None for one that is not; nothing is read.

    >>> locate("digits")
    {}
    """
    return dict(imported(CATALOGUE["locate"])(name))


def load(name: str, *, size: tuple[int, int] | None = None, progress: bool = False) -> Dataset:
    """Find, or download, and read a data set.

    Args:
        name: of the data set; ``pinoise datasets`` lists them.
        size: the height and width that images are brought to; their own if None.
        progress: whether a download shows a bar.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.n_classes
    (1437, 360, (64,), 10)
    """
    data: Dataset = imported(CATALOGUE["load"])(name, size=size, progress=progress)
    return data


def published_reader(path: Path) -> ArrayReader | None:
    """Return the reader of a file of MNIST's kind, or of a folder of MNIST, Fashion-MNIST, CIFAR or STL-10."""
    if path.is_file():
        return cast(ArrayReader, imported(FORMATS["idx"]).read) if file_format(path) == "idx" else None
    formats = (imported(where) for where in FORMATS.values())
    return next((found.read for found in formats if found.holds(path)), None)
