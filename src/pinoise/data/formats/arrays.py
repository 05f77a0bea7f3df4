"""NumPy files: one array (``.npy``), or named arrays and sparse matrices (``.npz``); nothing in them is unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.messages import damaged, listed
from pinoise.errors import UserError

GROUPS = ("groups", "group", "qid", "subject", "user", "speaker")

# All errors by which NumPy and the standard library report a damaged file.
_DAMAGE = (OSError, EOFError, ValueError, SyntaxError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read_npy(path: Path) -> RawArrays:
    """Open an array without reading it into memory."""
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGE as error:
        raise _unreadable(path, error) from error
    if not isinstance(x, np.ndarray):  # a .npz under a wrong name
        raise UserError(f"{path} is an archive of arrays: rename it to .npz.")
    return RawArrays(RawPart(x))


def read_npz(path: Path) -> RawArrays:
    """Read ``X_train, y_train, X_test, y_test``, or ``X`` and ``y``, or one array, or a sparse matrix.

    ``feature_names``, ``class_names`` and one array of groups (``subject_train``, ``qid_train``, ...) are read too
    where the file has them; other arrays are ignored.
    """
    with open_npz(path) as archive:
        if {"format", "shape", "data"} <= set(archive):
            matrix = sp.csr_array(sp.load_npz(path))
            matrix.check_format(full_check=True)
            return RawArrays(RawPart(matrix))
        return _from_archive(archive, path)


@contextmanager
def open_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """Open the arrays of a file by name; damage, a missing array and a pickled one are each one clear sentence."""
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise UserError(f"{path} is a single array: rename it to .npy.")
        with archive:
            yield archive
    except UserError:
        raise
    except KeyError as error:
        raise UserError(f"{path} lacks an array: {error.args[0]}.") from error
    except _DAMAGE as error:
        raise _unreadable(path, error) from error


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
    words = found.astype(np.str_) if found.dtype.kind == "S" else found
    return tuple(str(word) for word in words.ravel())


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
