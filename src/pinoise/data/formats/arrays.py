"""NumPy files: one array (``.npy``), or named arrays and sparse matrices (``.npz``); nothing in them is unpickled.

What a header promises is compared with what the file holds and with the machine's memory before any memory is taken.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.lazy import FileRows
from pinoise.data.limits import check_memory
from pinoise.data.messages import damaged, listed
from pinoise.errors import UserError
from pinoise.files import open_regular

GROUPS = ("groups", "group", "qid", "subject", "user", "speaker")

_MOST_AXES = 32  # of NumPy before version 2
# Version 3 is version 2 with names of fields in UTF-8, and plain numbers have no fields.
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    **dict.fromkeys([(2, 0), (3, 0)], np.lib.format.read_array_header_2_0),
}


class _Header(NamedTuple):
    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """The size of the array."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> RawArrays:
    """Open an array without reading it into memory, unless it is stored column by column."""
    try:
        with open_regular(path) as stream:
            if stream.peek(2)[:2] == b"PK":
                raise UserError(f"{path} is an archive of arrays: rename it to .npz.")
            header = _read_header(stream)
            start = stream.tell()
            size = stream.seek(0, 2) - start
        if header.bytes > size:
            raise ValueError(f"its header promises {header.bytes} bytes of values and {size} are there")
        if header.column_major or len(header.shape) < 2:
            check_memory(header.bytes, where=path, what="an array that is stored column by column")
            return RawArrays(RawPart(np.load(path, allow_pickle=False)))
        return RawArrays(RawPart(FileRows(path, header.shape, header.dtype, offset=start)))
    except (UserError, MemoryError):
        raise
    except Exception as error:  # damaged bytes can raise any error
        raise _unreadable(path, error) from error


def read_npz(path: Path) -> RawArrays:
    """Read ``X_train, y_train, X_test, y_test``, or ``X`` and ``y``, or one array, or a sparse matrix.

    ``feature_names``, ``class_names`` and one array of groups (``subject_train``, ``qid_train``, ...) are read too
    where the file has them; other arrays are ignored.
    """
    with open_npz(path) as archive:
        if {"format", "shape", "data"} <= set(archive):
            return RawArrays(RawPart(_sparse(archive, path)))
        return _from_archive(archive, path)


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """Open the arrays of a file by name; damage, a missing array and a pickled one are each one clear sentence."""
    try:
        with open_regular(path) as stream:
            if stream.peek(6)[:6] == np.lib.format.MAGIC_PREFIX:
                raise UserError(f"{path} is a single array: rename it to .npy.")
            if stream.peek(2)[:2] != b"PK":
                raise ValueError("it does not begin like a NumPy file")
            with zipfile.ZipFile(stream) as archive:
                yield _Arrays(archive, path)
    except (UserError, MemoryError):
        raise
    except KeyError as error:
        raise UserError(f"{path} lacks an array: {error.args[0]}.") from error
    except Exception as error:  # damaged bytes can raise any error
        raise _unreadable(path, error) from error


class _Arrays(Mapping[str, Array]):
    """The arrays of an archive, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, name: str) -> Array:
        if name not in self._members:
            raise KeyError(f"{name} is not a file in the archive")
        info = self._members[name]
        with self._archive.open(info) as stream:
            header = _read_header(stream)
        if header.bytes > info.file_size:
            raise ValueError(f"the array {name!r} promises {header.bytes} bytes and {info.file_size} are there")
        check_memory(header.bytes, where=self._path, what=f"the array {name!r}")
        with self._archive.open(info) as stream:
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read()  # to the end, where the checksum is compared
        return array


def _read_header(stream: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of NumPy's format is not for plain numbers")
    header = _Header(*_HEADERS[version](stream))
    if header.dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if any(size < 0 for size in header.shape) or len(header.shape) > _MOST_AXES:
        raise ValueError(f"its shape is {header.shape[:4]} …")
    return header


def _sparse(archive: Mapping[str, Array], path: Path) -> sp.csr_array:
    """Return a matrix that SciPy saved, as rows."""
    layout = archive["format"].item()
    layout = layout.decode("ascii") if isinstance(layout, bytes) else str(layout)
    rows, columns = (int(size) for size in archive["shape"].tolist())
    check_memory(8 * max(rows, columns), where=path, what=f"a matrix of shape {rows} × {columns}")
    data = archive["data"]
    if layout == "coo":
        position = archive["coords"] if "coords" in archive else (archive["row"], archive["col"])
        matrix = sp.csr_array(sp.coo_array((data, tuple(position)), shape=(rows, columns)))
    elif layout == "dia":
        matrix = sp.csr_array(sp.dia_array((data, archive["offsets"]), shape=(rows, columns)))
    elif layout in ("csr", "csc", "bsr"):
        make: Any = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[layout]
        stored = make((data, archive["indices"], archive["indptr"]), shape=(rows, columns))
        stored.check_format(full_check=True)
        matrix = sp.csr_array(stored)
    else:
        raise ValueError(f"a sparse matrix of format {layout!r} is not read; csr, csc, coo, bsr and dia are")
    matrix.check_format(full_check=True)
    return matrix


def _from_archive(archive: Mapping[str, Array], path: Path) -> RawArrays:
    names = list(archive)
    test = None
    if "X_train" in names:
        train = RawPart(archive["X_train"], archive.get("y_train"), _groups(archive, "_train"))
        if "X_test" in names:
            test = RawPart(archive["X_test"], archive.get("y_test"), _groups(archive, "_test"))
        elif "y_test" in names:
            raise UserError(f"{path} has y_test but no X_test.")
    elif samples := next((name for name in ("X", "x") if name in names), None):
        train = RawPart(archive[samples], archive.get("y"), _groups(archive, ""))
    elif len(names) == 1:
        train = RawPart(archive[names[0]])
    else:
        raise UserError(
            f"{path} has neither X_train nor X among its arrays ({listed(names) or 'none'}): name the samples X_train "
            "and the labels y_train, and X_test, y_test where there is a test part."
        )
    return RawArrays(train, test, _names(archive, "feature_names"), _names(archive, "class_names"))


def _groups(archive: Mapping[str, Array], ending: str) -> Array | None:
    return next((archive[name + ending] for name in GROUPS if name + ending in archive), None)


def _names(archive: Mapping[str, Array], name: str) -> tuple[str, ...] | None:
    found = archive.get(name)
    if found is None:
        return None
    if found.dtype.kind != "S":
        return tuple(str(word) for word in found.ravel())
    return tuple(word.decode("utf-8", errors="replace") for word in found.ravel().tolist())


def _unreadable(path: Path, error: Exception) -> UserError:
    reason = str(error)
    if reason.startswith("Object arrays") or "Python objects" in reason:
        return UserError(
            f"{path} holds an array of Python objects, which is not loaded because it can run code: save it as "
            "numbers, or as a CSV or Parquet table."
        )
    if "pickle" in reason:  # NumPy takes any unknown bytes for a pickle
        return damaged(path, ValueError("it does not begin like a NumPy file"))
    return damaged(path, error)
