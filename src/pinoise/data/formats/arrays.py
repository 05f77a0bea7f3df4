"""NumPy files: one array (``.npy``), or named arrays and sparse matrices (``.npz``); nothing in them is unpickled.

What a header promises is compared with what the file holds and with the machine's memory before any memory is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.lib.npyio import NpzFile

from pinoise.data.checks import check_memory, check_sparse
from pinoise.data.dataset import Array, Part, RawArrays
from pinoise.data.lazy import FileRows
from pinoise.errors import UserError, counted, damage_named, damaged, listed
from pinoise.files import open_regular

_BESIDE = (("y",), ("groups", "group", "qid", "subject", "user", "speaker"))  # names of labels and of groups
_NAMES = ("feature_names", "class_names")


def read_npy(path: Path) -> RawArrays:
    """Open an array without reading it into memory, unless it is stored column by column."""
    with _unreadable_named(path), np.errstate(over="ignore"):  # of a size beyond all numbers
        with open_regular(path) as stream:
            if stream.peek(2)[:2] == b"PK":
                raise UserError(f"{path} is an archive of arrays: rename it to .npz.")
        found = np.lib.format.open_memmap(path, mode="r")  # compares the header with the file, and reads no row
        if found.ndim > 1 and found.flags.c_contiguous:
            return RawArrays(Part(FileRows(path, found.shape, found.dtype, offset=found.offset)))
        check_memory(found.nbytes, where=path, what="an array that is stored column by column")
        return RawArrays(Part(np.load(path, allow_pickle=False)))


def read_npz(path: Path) -> RawArrays:
    """Read ``X_train, y_train, X_test, y_test``, or ``X`` and ``y``, or one array, or a sparse matrix.

    ``feature_names``, ``class_names`` and one array of groups (``subject_train``, ``qid_train``, ...) are read too
    where the file has them; a note names the arrays that are left out.
    """
    with open_npz(path) as archive:
        if {"format", "shape", "data"} <= set(archive):
            matrix = sp.load_npz(path)
            check_sparse(matrix, where=str(path))
            return RawArrays(Part(sp.csr_array(matrix)))
        alone = archive if len(archive) == 1 else ()
        samples = next((name for name in ("X_train", "X", "x", *alone) if name in archive), None)
        if samples is None:
            what = f"has neither X_train nor X among its arrays ({listed(archive) or 'none'})"
            raise UserError(f"{path} {what}: call the samples X and the labels y, or X_train, y_train, X_test, y_test.")
        if "y_test" in archive and "X_test" not in archive:
            raise UserError(f"{path} has labels y_test and no samples X_test: add them, or leave the labels out.")
        features, classes = (_names(archive, name) for name in _NAMES)
        used = set(_NAMES)
        train = _part(archive, samples, "_train" if samples == "X_train" else "", used)
        test = _part(archive, "X_test", "_test", used) if "X_test" in archive else None
        left = [name for name in archive if name not in used]
        notes = (f"left out {counted(len(left), 'array')} of the file: {listed(left)}",) if left else ()
        return RawArrays(train, test, features, classes, notes=notes)


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """Open the arrays of a file by name; damage, a missing array and a pickled one are each one clear sentence."""
    with _unreadable_named(path), open_regular(path) as stream:
        if stream.peek(6)[:6] == np.lib.format.MAGIC_PREFIX:
            raise UserError(f"{path} is a single array: rename it to .npy.")
        with NpzFile(stream, allow_pickle=False) as archive:
            for info in archive.zip.infolist():  # type: ignore[union-attr]
                check_memory(info.file_size, where=path, what=f"the array {info.filename.removesuffix('.npy')!r}")
            yield archive


def _part(archive: Mapping[str, Array], samples: str, ending: str, used: set[str]) -> Part:
    """Return one side of the split, and add the names of its arrays to those that are ``used``."""
    beside = [next((name + ending for name in names if name + ending in archive), "") for names in _BESIDE]
    used.update((samples, *beside))
    y, groups = (archive[name] if name else None for name in beside)
    return Part(archive[samples], y, groups)


def _names(archive: Mapping[str, Array], name: str) -> tuple[str, ...] | None:
    if name not in archive:
        return None
    words = archive[name].ravel()
    return tuple(map(str, np.char.decode(words, "utf-8", "replace") if words.dtype.kind == "S" else words))


@contextmanager
def _unreadable_named(path: Path) -> Iterator[None]:
    """Turn every error of a block that reads a file into one sentence."""
    try:
        with damage_named(path, Exception):  # damaged bytes can raise any error
            yield
    except MemoryError as error:
        raise damaged(path, error) from error
    except UserError as error:
        if "Python objects" in str(error) or "Object arrays" in str(error):
            advice = "save it as numbers, or as a CSV or Parquet table"
            raise UserError(f"{path} holds an array of Python objects, which can run code: {advice}.") from error
        raise
