"""From a path to arrays or a table, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pinoise.data.formats.arrays import read_npy, read_npz
from pinoise.data.formats.cifar import holds_cifar, read_cifar
from pinoise.data.formats.extensions import file_format
from pinoise.data.formats.idx import holds_idx, read_idx_folder, read_idx_samples
from pinoise.data.formats.raw import RawArrays, RawTable
from pinoise.data.formats.stl10 import holds_stl10, read_stl10
from pinoise.data.formats.svmlight import read_svmlight
from pinoise.data.formats.tables import read_csv, read_parquet


def is_table_file(path: Path) -> bool:
    """Whether a path is a file with named columns."""
    return not path.is_dir() and file_format(path) in ("csv", "parquet")


def is_image_folder(path: Path) -> bool:
    """Whether a path is a folder of image files, not one of a published set in files of its own kind."""
    return path.is_dir() and _folder_reader(path) is None


def read_table_file(path: Path, *, text: Sequence[str] = ()) -> RawTable:
    """Read a table; the columns in ``text`` are not guessed to be numbers."""
    return read_parquet(path) if file_format(path) == "parquet" else read_csv(path, text=text)


def read_array_file(path: Path, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
    """Read a file of arrays or the folder of a published set; ``n_features`` and ``first_index`` as for svmlight."""
    if path.is_dir():
        reader = _folder_reader(path)
    else:
        reader = {"idx": read_idx_samples, "npy": read_npy, "npz": read_npz}.get(file_format(path))
    return read_svmlight(path, n_features=n_features, first_index=first_index) if reader is None else reader(path)


def _folder_reader(folder: Path) -> Callable[[Path], RawArrays] | None:
    """Return the reader of an unpacked MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 or STL-10; None for other folders."""
    known = ((holds_idx, read_idx_folder), (holds_cifar, read_cifar), (holds_stl10, read_stl10))
    return next((reader for holds, reader in known if holds(folder)), None)
