"""Checks of samples that all sources share: finite values, numeric types, one label for each row."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices
from pinoise.data.moments import canonical
from pinoise.errors import UserError

LARGEST_NUMBER = float(np.finfo(np.float32).max)
"""The largest number that samples may hold, so that squares, and sums of them, stay finite in double precision."""

_WIDER = {"b1": "u1", "f2": "f4", "f16": "f8"}  # the types that samples of other types become


def check_finite(x: Samples, feature_names: Sequence[str] | None = None, *, where: str = "the array") -> None:
    """Raise an error that names the row and the feature of the first value that cannot be computed with.

    That is NaN, an infinite value, or one beyond ``LARGEST_NUMBER``. Only the stored values of a sparse matrix are
    checked, and dense values block by block.

    >>> check_finite(np.array([[1.0, np.nan]]), ["age", "height"], where="people.npy")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: people.npy has NaN in row 0 (counted from 0), feature 'height': fill or remove it.
    """
    found = _first_unusable(x) if x.dtype.kind == "f" else None
    if found is None:
        return
    value, row, *position = found
    if len(position) == 1:
        place = f"feature {position[0] if feature_names is None else repr(feature_names[position[0]])}"
    else:
        place = f"position {tuple(position)}"
    if np.isfinite(value):
        shown, advice = f"{value:g}", f", which is too large (beyond ±{LARGEST_NUMBER:.1e}): rescale the feature."
    else:
        shown, advice = "NaN" if value != value else str(value), ": fill or remove it."
    raise UserError(f"{where} has {shown} in row {row} (counted from 0), {place}{advice}")


def _first_unusable(x: Samples) -> tuple[Any, ...] | None:
    """Return the first value that cannot be computed with, its row and its position there."""
    if isinstance(x, sp.csr_array):
        bad = np.flatnonzero(~_usable(x.data))
        if not len(bad):
            return None
        return x.data[bad[0]], int(np.searchsorted(x.indptr, bad[0], side="right")) - 1, int(x.indices[bad[0]])
    for chunk in row_slices(x):
        usable = _usable(x[chunk])
        if not usable.all():
            row, *position = np.argwhere(~usable)[0].tolist()
            return x[chunk][(row, *position)], chunk.start + row, *position
    return None


def _usable(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values) <= LARGEST_NUMBER)  # false for NaN too


def numeric_samples(x: Samples, *, where: str) -> Samples:
    """Return samples in a type that every later step can read; most arrays are returned unchanged.

    Float16 becomes float32, truth values become 0 and 1, and a foreign byte order becomes this machine's.
    Numbers in an array of Python objects become float64, and whole numbers in a sparse matrix float32 where that holds
    them.
    """
    if x.ndim < 2:
        raise UserError(f"{where} has shape {x.shape}: samples need at least two axes, rows first.")
    if 0 in x.shape:
        raise UserError(f"{where} has shape {x.shape}: there is nothing to learn from.")
    if x.dtype.kind == "O" and not sp.issparse(x):
        with suppress(TypeError, ValueError):
            x = np.asarray(x, dtype=np.float64)
    if x.dtype.kind not in "fiub":
        what = f"holds values of type {x.dtype}"
        raise UserError(f"{where} {what}: samples must be numbers; text is encoded in tables alone.")
    if sp.issparse(x):
        # Centre, scale and the passes that learn them take some numbers for each column.
        check_memory(128 * x.shape[1], where=where, what=f"a matrix of {x.shape[1]} columns")
        matrix = sp.csr_array(x)
        if matrix.dtype not in (np.float32, np.float64):
            single = matrix.astype(np.float32)
            matrix = single if (single.data == matrix.data).all() else matrix.astype(np.float64)
        return canonical(matrix)
    wanted = np.dtype(_WIDER.get(x.dtype.str[1:], x.dtype.newbyteorder("=")))
    return x if x.dtype == wanted else np.asarray(x, dtype=wanted)


def check_sparse(matrix: Any, *, where: str) -> None:
    """Refuse a sparse matrix whose indices point outside it: compiled code would read other memory there.

    It takes a pass over the indices.

    >>> matrix = sp.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> matrix.indices[0] = 9
    >>> check_sparse(matrix, where="X")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: X is a broken sparse matrix (indices must be < 2): make it again.
    """
    check_memory(8 * max(matrix.shape), where=where, what=f"a sparse matrix of shape {matrix.shape}")
    if matrix.format not in ("csr", "csc", "bsr"):
        return
    try:  # a copy of the frame alone, because the check may change it
        frame = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)
        frame.check_format(full_check=True)
    except ValueError as error:
        raise UserError(f"{where} is a broken sparse matrix ({error}): make it again.") from None


def check_rows(got: int, rows: int, what: str, where: str) -> None:
    """Raise an error unless there is one label or group for each row."""
    if got != rows:
        raise UserError(f"{where} has {rows} rows but {got} {what}: there must be one for each row.")


def free_memory() -> int:
    """Return the bytes of memory that are free here: where the system does not say, all that there are, or no bound."""
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return sys.maxsize
    if found := re.search(r"MemAvailable: +(\d+) kB", _text("/proc/meminfo")):
        free = 1024 * int(found[1])
    group = _text("/sys/fs/cgroup/memory.max").strip()  # what a container may take
    return min(free, int(group)) if group.isdecimal() else free


def _text(path: str) -> str:
    return Path(path).read_text(encoding="ascii") if os.access(path, os.R_OK) else ""


def check_memory(needed: int, *, where: str | Path, what: str) -> None:
    """Raise an error if something takes more bytes than there is memory, asked before an array of that size is made.

    >>> check_memory(1 << 60, where="a.npz", what="the array 'X'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.npz: the array 'X' takes 1152921505 GB of memory and this machine has ... free: ...
    """
    free = free_memory()
    if needed > free:
        sizes = f"{needed / 1e9:.0f} GB of memory and this machine has {free / 1e9:.0f} GB free"
        raise UserError(f"{where}: {what} takes {sizes}: give less data, or get the file again.")
