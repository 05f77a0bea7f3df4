"""Norms of rows, and mean and variance of features, in passes over bounded chunks of dense or sparse samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices

Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Mean and variance of every feature."""


VANISHING = 1e-140
"""Below this the squares of numbers lose digits in double precision, or vanish."""

_ENLARGED = 2.0**700


def row_norms(x: Samples) -> npt.NDArray[np.float64]:
    """Return the Euclidean norm of every sample, (n,).

    >>> row_norms(np.array([[3, 4], [0, 0]])).tolist()
    [5.0, 0.0]
    """
    if isinstance(x, sp.csr_array):
        x = canonical(x)
        return _root_sums(x.data, np.diff(x.indptr))
    norms = np.zeros(len(x))
    for chunk in row_slices(x):
        flat = np.asarray(x[chunk]).reshape(chunk.stop - chunk.start, -1)
        filled = flat != 0
        norms[chunk] = _root_sums(flat[filled], np.count_nonzero(filled, axis=1))
    return norms


def feature_moments(x: Samples, *, unit_rows: bool) -> Moments:
    """Return mean and variance of every feature, of rows brought to length 1 if ``unit_rows``."""
    return _sparse_moments(x, unit_rows) if isinstance(x, sp.csr_array) else _dense_moments(x, unit_rows)


def row_divisors(x: Samples) -> npt.NDArray[np.float64]:
    """Return what brings every row to length 1, (n, 1, …) to divide by; 1 for a row of zeros, which stays as it is."""
    norms = row_norms(x)
    return beside(np.where(norms > 0, norms, 1.0), x)


def beside(norms: npt.NDArray[np.float64], x: Samples) -> npt.NDArray[np.float64]:
    """Return one number for each row in a shape that broadcasts against the rows."""
    return norms.reshape(len(norms), *(1,) * (x.ndim - 1))


def _root_sums(values: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    # Of the non-zero values alone, one row after the other: how sums round then depends neither on how the rows are
    # stored nor on the rows beside them.
    starts = np.cumsum(counts) - counts
    filled = counts > 0

    def roots(of: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        sums = np.zeros(len(counts))
        sums[filled] = np.add.reduceat(np.square(of, dtype=np.float64), starts[filled])
        return np.sqrt(sums)

    norms = roots(values)
    small = filled & (norms < VANISHING)
    if small.any():  # their squares are lost, so these are taken of larger numbers; a power of two is exact
        enlarged = np.where(np.repeat(small, counts), values.astype(np.float64), 0.0) * _ENLARGED
        norms[small] = roots(enlarged)[small] / _ENLARGED
    return norms


def first_difference(x: Samples, features: npt.NDArray[np.bool_]) -> tuple[int, tuple[int, ...]] | None:
    """Return row and position of the first value that differs from the first row's in some of the ``features``.

    >>> first_difference(np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 1e-200]]), np.array([False, True]))
    (2, (1,))
    """
    if isinstance(x, sp.csr_array):
        chosen = np.flatnonzero(features)
        columns = sp.csc_array(canonical(x)[:, chosen])
        spread = np.flatnonzero((columns.max(axis=0) - columns.min(axis=0)).toarray())
        if not len(spread):
            return None
        return int(columns.indices[columns.indptr[spread[0]]]), (int(chosen[spread[0]]),)
    first = np.asarray(x[:1])
    for chunk in row_slices(x):
        other = (np.asarray(x[chunk]) != first) & features
        if other.any():
            row, *position = (int(number) for number in np.argwhere(other)[0])
            return chunk.start + row, tuple(position)
    return None


def canonical(x: sp.csr_array) -> sp.csr_array:
    """Return the matrix with exactly one entry for each non-zero value, in order; itself where it is so already."""
    if x.has_canonical_format and len(x.data) == x.nnz == np.count_nonzero(x.data):
        return x
    x = x.copy()  # sorting must not change the caller's matrix
    x.sum_duplicates()
    x.eliminate_zeros()
    return x


def _dense_moments(x: Samples, unit_rows: bool) -> Moments:
    n = len(x)

    def read(rows: slice) -> npt.NDArray[Any]:
        dense = np.asarray(x[rows])
        return dense / row_divisors(dense) if unit_rows else dense

    # Sums are of distances from the first row, so that those of a constant feature are exactly zero.
    first = read(slice(1))[0].astype(np.float64)
    mean = first + sum((read(chunk) - first).sum(axis=0) for chunk in row_slices(x)) / n
    rest = np.zeros_like(first)  # what rounding left out of the mean
    square = np.zeros_like(first)
    for chunk in row_slices(x):
        distance = read(chunk) - mean
        rest += distance.sum(axis=0)
        square += np.square(distance, out=distance).sum(axis=0)
    return mean + rest / n, square / n


def one_pass_moments(x: Samples) -> Moments:
    """Return mean and variance of every feature, exact for bytes, in one pass, because each may decode all images."""
    first = np.asarray(x[:1])[0].astype(np.float64)
    total, squares = np.zeros_like(first), np.zeros_like(first)
    for chunk in row_slices(x):
        distance = np.asarray(x[chunk]) - first
        total += distance.sum(axis=0)
        squares += np.square(distance, out=distance).sum(axis=0)
    mean = total / len(x)
    return first + mean, np.maximum(squares / len(x) - np.square(mean), 0.0)


def _sparse_moments(x: sp.csr_array, unit_rows: bool) -> Moments:
    n, width = x.shape
    rows = canonical(x).astype(np.float64)
    if unit_rows:
        rows.data /= np.repeat(row_divisors(rows), np.diff(rows.indptr))
    columns = rows.tocsc(copy=True)
    filled = np.diff(columns.indptr)
    # As for dense samples; a column with a zero in it is constant only if it is zero throughout.
    first = np.zeros(width)
    full = np.flatnonzero(filled == n)
    first[full] = columns.data[columns.indptr[full]]
    columns.data -= np.repeat(first, filled)
    offset = np.asarray(columns.sum(axis=0)).ravel() / n
    columns.data -= np.repeat(offset, filled)
    # The zeros of a sparse column are all at distance mean from it.
    square = np.asarray(columns.multiply(columns).sum(axis=0)).ravel() + (n - filled) * offset**2
    return first + offset, square / n
