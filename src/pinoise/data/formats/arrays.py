"""NumPy files: one array (``.npy``), or named arrays and sparse matrices (``.npz``); nothing in them is unpickled.

What a header promises is compared with what the file holds and with the machine's memory before any memory is taken.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pinoise.data.dataset import Array, RawArrays, RawPart
from pinoise.data.lazy import FileRows
from pinoise.data.messages import check_memory, damaged, listed
from pinoise.errors import UserError
from pinoise.files import open_regular

GROUPS = ("groups", "group", "qid", "subject", "user", "speaker")

_COMPRESSED: dict[str, Any] = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}


def read_npy(path: Path) -> RawArrays:
    """Open an array without reading it into memory, unless it is stored column by column."""
    with _unreadable_named(path), np.errstate(over="ignore"):  # of a size beyond all numbers
        with open_regular(path) as stream:
            if stream.peek(2)[:2] == b"PK":
                raise UserError(f"{path} is an archive of arrays: rename it to .npz.")
        found = np.lib.format.open_memmap(path, mode="r")  # compares the header with the file, and reads no row
        if found.ndim > 1 and found.flags.c_contiguous:
            return RawArrays(RawPart(FileRows(path, found.shape, found.dtype, offset=found.offset)))
        check_memory(found.nbytes, where=path, what="an array that is stored column by column")
        return RawArrays(RawPart(np.load(path, allow_pickle=False)))


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
    with _unreadable_named(path), open_regular(path) as stream:
        if stream.peek(6)[:6] == np.lib.format.MAGIC_PREFIX:
            raise UserError(f"{path} is a single array: rename it to .npy.")
        with zipfile.ZipFile(stream) as archive:
            yield _Arrays(archive, path)


class _Arrays(Mapping[str, Array]):
    """The arrays of an archive, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        self._names = [name.removesuffix(".npy") for name in archive.namelist()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Array:
        info = self._archive.getinfo(f"{name}.npy")
        check_memory(info.file_size, where=self._path, what=f"the array {name!r}")
        with self._archive.open(info) as stream:
            try:
                array: Array = np.lib.format.read_array(stream, allow_pickle=False)
            except MemoryError as error:
                raise ValueError(f"the array {name!r} promises more than {info.file_size} bytes") from error
            stream.read()  # to the end, where the checksum is compared
        return array


def _sparse(archive: Mapping[str, Array], path: Path) -> sp.csr_array:
    """Return a matrix that SciPy saved, as rows."""
    layout = archive["format"].astype(str).item()
    rows, columns = shape = tuple(archive["shape"].tolist())
    check_memory(8 * max(shape), where=path, what=f"a matrix of shape {rows} × {columns}")
    if layout == "coo":
        position = archive["coords"] if "coords" in archive else (archive["row"], archive["col"])
        matrix: Any = sp.coo_array((archive["data"], tuple(position)), shape=shape)
    elif layout == "dia":
        matrix = sp.dia_array((archive["data"], archive["offsets"]), shape=shape)
    elif layout in _COMPRESSED:
        matrix = _COMPRESSED[layout]((archive["data"], archive["indices"], archive["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
    else:
        raise ValueError(f"a sparse matrix of format {layout!r} is not read; csr, csc, coo, bsr and dia are")
    return sp.csr_array(matrix)


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
    if name not in archive:
        return None
    words = archive[name].ravel()
    return tuple(map(str, np.char.decode(words, "utf-8", "replace") if words.dtype.kind == "S" else words))


@contextmanager
def _unreadable_named(path: Path) -> Iterator[None]:
    """Turn every error of a block that reads a file into one sentence."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except KeyError as error:
        raise UserError(f"{path} lacks an array: {error.args[0]}.") from error
    except Exception as error:  # damaged bytes can raise any error
        if "Python objects" in str(error) or str(error).startswith("Object arrays"):
            raise UserError(
                f"{path} holds an array of Python objects, which is not loaded because it can run code: save it as "
                "numbers, or as a CSV or Parquet table."
            ) from error
        raise damaged(path, error) from error
