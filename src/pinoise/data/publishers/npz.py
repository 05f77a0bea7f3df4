"""Plain files of numpy arrays and of scipy's sparse matrices; pickled objects in them are never loaded."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Labels, Part
from pinoise.errors import UserError

Arrays = Mapping[str, npt.NDArray[Any]]


@contextmanager
def open_npz(path: Path) -> Iterator[Arrays]:
    """Open the arrays of a file; damage, a missing array and a pickled one are each one clear sentence."""
    try:
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise UserError(f"{path} holds one array and no names: a .npz file is needed.")
        with arrays:
            yield arrays
    except UserError:
        raise
    except KeyError as error:
        raise UserError(f"{path} lacks an array: {error.args[0]}.") from error
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}.") from error


def read_npz(
    paths: Sequence[Path],
    *,
    name: str,
    groups: str | None = None,
    class_names: tuple[str, ...] | None = None,
) -> Dataset:
    """Read ``X_train``, ``y_train``, ``X_test``, ``y_test``, or ``X`` alone, in the type that the file has.

    ``groups`` is the first word of the arrays that tell whose sample a row is: ``subject`` stands for
    ``subject_train`` and ``subject_test``. Names in the file win over ``class_names``.
    """
    (path,) = paths
    with open_npz(path) as arrays:
        if "X" in arrays:
            return Dataset(name, train=Part(arrays["X"]))
        return Dataset(
            name,
            train=_part(path, arrays, "train", groups),
            test=_part(path, arrays, "test", groups),
            feature_names=_names(arrays, "feature_names"),
            class_names=_names(arrays, "class_names") or class_names,
        )


def read_sparse_npz(paths: Sequence[Path], *, name: str) -> Dataset:
    """Read one sparse matrix as scipy's ``save_npz`` writes it: samples without labels or split."""
    (path,) = paths
    with open_npz(path) as arrays:
        kind = arrays["format"].item()
        if kind not in (b"csr", "csr"):
            raise UserError(f"{path} holds a sparse matrix of the format {kind!r}: only csr is read.")
        parts = (arrays["data"].astype(np.float32, copy=False), arrays["indices"], arrays["indptr"])
        rows, columns = arrays["shape"].tolist()
        x = sp.csr_array(parts, shape=(rows, columns))
        x.check_format(full_check=True)
    x.sort_indices()
    return Dataset(name, train=Part(x))


def labels(path: Path, arrays: Arrays, key: str, rows: int) -> Labels:
    """Return an array of labels as whole numbers from 0, one per row."""
    y = arrays[key]
    if y.shape != (rows,) or y.dtype.kind not in "iu" or (y.size and y.min() < 0):
        raise UserError(
            f"{path}, array {key!r}: {rows} whole numbers from 0 are needed; {y.dtype} of shape {y.shape} was found."
        )
    return y.astype(np.int64)


def _part(path: Path, arrays: Arrays, side: str, groups: str | None) -> Part:
    x = arrays[f"X_{side}"]
    return Part(
        x,
        labels(path, arrays, f"y_{side}", len(x)),
        None if groups is None else labels(path, arrays, f"{groups}_{side}", len(x)),
    )


def _names(arrays: Arrays, key: str) -> tuple[str, ...] | None:
    return tuple(str(name) for name in arrays[key]) if key in arrays else None
