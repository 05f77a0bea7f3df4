"""Checks of samples that all sources share: finite values, numeric types, one label for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices
from pinoise.data.lazy import LazyArray
from pinoise.data.messages import check_memory
from pinoise.errors import UserError

LARGEST_NUMBER = float(np.finfo(np.float32).max)
"""The largest number that samples may hold, so that squares, and sums of them, stay finite in double precision."""


def check_finite(
    x: Samples, feature_names: Sequence[str] | None = None, *, where: str = "the array", first: int = 0
) -> None:
    """Raise an error that names the row and the feature of the first value that cannot be computed with.

    That is NaN, an infinite value, or one beyond ``LARGEST_NUMBER``. Only the stored values of a sparse matrix are
    checked, and dense values block by block. ``first`` is the number of the first row, for messages.

    >>> check_finite(np.array([[1.0, np.nan]]), ["age", "height"], where="people.npy")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: people.npy has NaN in row 0 (counted from 0), feature 'height': fill or remove it.
    """
    if x.dtype.kind != "f":
        return
    if sp.issparse(x):
        bad = np.flatnonzero(~_usable(x.data))
        if len(bad):
            found = int(bad[0])
            row = int(np.searchsorted(x.indptr, found, side="right")) - 1
            raise _not_finite(x.data[found], first + row, (int(x.indices[found]),), feature_names, where)
        return
    dense = cast("np.ndarray[Any, Any]", x)
    for chunk in row_slices(dense):
        usable = _usable(dense[chunk])
        if not usable.all():
            first_row, *position = (int(i) for i in np.argwhere(~usable)[0])
            row = chunk.start + first_row
            raise _not_finite(dense[(row, *position)], first + row, tuple(position), feature_names, where)


def _not_finite(
    value: float, row: int, position: tuple[int, ...], names: Sequence[str] | None, where: str
) -> UserError:
    if len(position) == 1:
        place = f"feature {names[position[0]]!r}" if names is not None else f"feature {position[0]}"
    else:
        place = f"position {position}"
    if np.isfinite(value):
        return UserError(
            f"{where} has {value:g} in row {row} (counted from 0), {place}, which is too large (beyond "
            f"±{LARGEST_NUMBER:.1e}): rescale the feature."
        )
    shown = "NaN" if value != value else value
    return UserError(f"{where} has {shown} in row {row} (counted from 0), {place}: fill or remove it.")


def _usable(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        usable: npt.NDArray[np.bool_] = np.abs(values) <= LARGEST_NUMBER  # false for NaN too
    return usable


def numeric_samples(x: Samples, *, where: str) -> Samples:
    """Return samples in a type that every later step can read; most arrays are returned unchanged.

    Float16 becomes float32, truth values become 0 and 1, and a foreign byte order becomes this machine's.
    Numbers in an array of Python objects become float64.
    """
    if x.ndim < 2:
        raise UserError(f"{where} has shape {x.shape}: samples need at least two axes, rows first.")
    if 0 in x.shape:
        raise UserError(f"{where} has shape {x.shape}: there is nothing to learn from.")
    if sp.issparse(x):
        return _numeric_sparse(x, where)
    if isinstance(x, LazyArray) and (x.dtype.kind not in "iu" or not x.dtype.isnative):
        if x.dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            return x
        x = np.asarray(x)  # of a type that has to be changed
    dense = cast("np.ndarray[Any, Any]", x)
    if dense.dtype.kind == "O":
        try:
            dense = dense.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise _not_numeric(dense.dtype, where) from error
    if dense.dtype.kind == "b":
        return dense.view(np.uint8)
    if dense.dtype.kind not in "fiu":
        raise _not_numeric(dense.dtype, where)
    if dense.dtype.kind == "f" and dense.dtype.itemsize not in (4, 8):
        return dense.astype(np.float32 if dense.dtype.itemsize == 2 else np.float64)
    return dense if dense.dtype.isnative else dense.astype(dense.dtype.newbyteorder("="))


def _numeric_sparse(x: sp.csr_array, where: str) -> sp.csr_array:
    matrix = sp.csr_array(x)
    # Centre, scale and the passes that learn them take some numbers for each column.
    check_memory(128 * matrix.shape[1], where=where, what=f"a matrix of {matrix.shape[1]} columns")
    if matrix.dtype.kind not in "fiub":
        raise _not_numeric(matrix.dtype, where)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float32)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # sorting must not change the caller's matrix
        matrix.sum_duplicates()
    return matrix


def _not_numeric(dtype: np.dtype[Any], where: str) -> UserError:
    return UserError(
        f"{where} holds values of type {dtype}: samples must be numbers; give columns of text in a CSV or "
        "Parquet file or a data frame, where they are encoded."
    )


def check_rows(got: int, rows: int, what: str, where: str) -> None:
    """Raise an error unless there is one label or group for each row."""
    if got != rows:
        raise UserError(f"{where} has {rows} rows but {got} {what}: there must be one for each row.")
