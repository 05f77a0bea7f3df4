"""NumPy files: one array (``.npy``), or named arrays and sparse matrices (``.npz``)."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.checks import listed
from pinoise.data.dataset import Samples
from pinoise.errors import UserError

Array = npt.NDArray[Any]
GROUPS = ("groups", "group", "qid", "subject", "user", "speaker")


@dataclass(frozen=True)
class RawPart:
    """Samples with labels and groups of whatever type the source has."""

    x: Samples
    y: Array | None = None
    groups: Array | None = None


@dataclass(frozen=True)
class RawArrays:
    """What a source of arrays holds, before anything is learned from it."""

    train: RawPart
    test: RawPart | None = None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    first_index: int | None = None  # number of the first feature in an svmlight file


def read_npy(path: Path) -> RawArrays:
    """Open an array without reading it into memory."""
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError, SyntaxError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(x, np.ndarray):  # a .npz under a wrong name
        raise UserError(f"{path} is an archive of arrays: rename it to .npz.")
    return RawArrays(RawPart(x))


def read_npz(path: Path) -> RawArrays:
    """Read ``X_train, y_train, X_test, y_test``, or ``X`` and ``y``, or one array, or a sparse matrix.

    ``feature_names``, ``class_names`` and one array of groups (``subject_train``, ``qid_train``, ...) are read too
    where the file has them; other arrays are left alone.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise UserError(f"{path} is a single array: rename it to .npy.")
        with loaded as archive:
            if {"format", "shape", "data"} <= set(archive.files):
                return RawArrays(RawPart(sp.csr_array(sp.load_npz(path))))
            return _from_archive(archive, path)
    except UserError:
        raise
    except (OSError, EOFError, ValueError, KeyError, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
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
    reason = str(error)  # garbage is reported as "pickled (object) data", an object array in these words
    if reason.startswith("Object arrays") or "Python objects" in reason:
        return UserError(
            f"{path} holds an array of Python objects, which is not loaded because it can run code: save it as "
            "numbers, or as a CSV or Parquet table."
        )
    return UserError(f"{path} is damaged, cut off or not what its extension says.")
