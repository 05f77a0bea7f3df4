"""What is measured of samples, dense or sparse, in passes over bounded chunks: norms of rows, moments, heavy tails.

Features such as amounts of money and counts have heavy tails; a logarithm brings them nearer to their middle.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices

Floats = npt.NDArray[np.float64]

Moments = tuple[Floats, Floats]
"""Mean and variance of every feature."""

VANISHING = 1e-140
"""Below this the squares of numbers lose digits in double precision, or vanish: what varies less is constant."""

HEAVY_TAILS = "at least half of the features have heavy tails, which arcsinh brings nearer, in raw features, too"
"""What users are told where nobody has asked for it."""

_HEAVY = 50.0  # kurtosis of a feature with heavy tails; a normal distribution has 3, an exponential one 9
_QUARTILES_APART = 1.349  # of a normal distribution, in standard deviations
_ROUNDING = 10 * np.finfo(np.float64).eps  # of quartiles, relative to their size

# Of the rows that are looked at; kurtosis needs a hundred.
_MOST_ROWS, _MOST_ENTRIES, _LEAST_ROWS = 4096, 1 << 22, 128


def row_norms(x: Samples) -> Floats:
    """Return the Euclidean norm of every sample, (n,).

    >>> row_norms(np.array([[3, 4], [0, 0]])).tolist()
    [5.0, 0.0]
    """
    if isinstance(x, sp.csr_array):
        return np.asarray(sp.linalg.norm(canonical(x).astype(np.float64), axis=1))
    norms = np.zeros(len(x))
    for chunk in row_slices(x):
        rows = np.ascontiguousarray(x[chunk], dtype=np.float64)
        norms[chunk] = np.linalg.norm(rows.reshape(len(rows), -1), axis=1)
    return norms


def row_divisors(x: Samples) -> Floats:
    """Return what brings every row to length 1, (n, 1, …) to divide by; 1 for a row of zeros, which stays as it is."""
    norms = row_norms(x)
    return beside(np.where(norms > VANISHING, norms, 1.0), x)


def beside(norms: Floats, x: Samples) -> Floats:
    """Return one number for each row in a shape that broadcasts against the rows."""
    return norms.reshape(len(norms), *(1,) * (x.ndim - 1))


def canonical(x: sp.csr_array) -> sp.csr_array:
    """Return the matrix with exactly one entry for each non-zero value, in order; itself where it is so already."""
    if x.has_canonical_format and len(x.data) == x.nnz == np.count_nonzero(x.data):
        return x
    x = x.copy()  # sorting must not change the caller's matrix
    x.sum_duplicates()
    x.eliminate_zeros()
    return x


def feature_moments(x: Samples, *, unit_rows: bool) -> Moments:
    """Return mean and variance of every feature, of rows brought to length 1 if ``unit_rows``."""
    n = x.shape[0]

    def read(rows: slice) -> Floats:
        rows_read = dense(x[rows])
        return rows_read / row_divisors(rows_read) if unit_rows else rows_read

    # Sums are of distances from the first row, so that those of a constant feature are exactly zero.
    first = read(slice(1))[0]
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


class Tails(NamedTuple):
    """Mean and standard deviation of features after ``arcsinh``, by which they are standardised."""

    mean: Floats  # (*shape)
    scale: Floats  # (*shape), 0 for dead features


def robust_units(x: Samples, mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return the median of every feature, and a scale that no outlier inflates: the quartiles' distance / 1.349.

    Where the quartiles are equal, as in counts that are mostly 0, the scale is the median distance of the other values
    from the median. At most 4,096 random rows are looked at, and fewer if they are wide. Where all of them are equal,
    mean and deviation are returned.

    Args:
        x: samples (n, *shape).
        mean: of every feature.
        deviation: the standard deviation of every feature, 0 for dead ones.

    >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1e9, 5.0]])
    >>> [unit.round(3).tolist() for unit in robust_units(x, x.mean(axis=0), x.std(axis=0))]
    [[2.0, 0.0], [1.483, 5.0]]
    """
    values = _some_rows(x)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    apart = (high - low) / _QUARTILES_APART
    equal = apart <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    distance = np.abs(values[:, equal] - middle[equal])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a column in which all are equal
        apart[equal] = np.nan_to_num(np.nanmedian(np.where(distance > 0, distance, np.nan), axis=0))
    middle, apart = middle.reshape(mean.shape), apart.reshape(mean.shape)
    usable = (deviation > 0) & (apart > VANISHING)
    return np.where(usable, middle, mean), np.where(usable, apart, deviation)


def local_units(x: Samples, middle: Floats, scale: Floats, tails: Tails) -> Floats:
    """Return the size in x of 1 after arcsinh and standardisation, at every value: scale · √(1 + z²), (n, *shape).

    >>> x = np.array([[0.0], [30.0]])
    >>> local_units(x, np.zeros(1), np.ones(1), Tails(np.zeros(1), np.ones(1))).round(1).tolist()
    [[1.0], [30.0]]
    """
    z = (dense(x) - middle) / np.where(scale > 0, scale, np.inf)
    return np.asarray(scale * tails.scale * np.hypot(1, z))


def measure_tails(x: Samples, middle: Floats, scale: Floats) -> Tails:
    """Return mean and deviation of arcsinh((x − middle) / scale), in passes over bounded chunks.

    Args:
        x: samples (n, *shape).
        middle: as of ``robust_units``.
        scale: as of ``robust_units``; 0 for dead features.
    """
    divisor = np.where(scale > 0, scale, np.inf)

    def compressed(rows: slice) -> Floats:
        return np.arcsinh((dense(x[rows]) - middle) / divisor)

    n, none = x.shape[0], np.zeros_like(middle)
    mean = sum((compressed(chunk).sum(axis=0) for chunk in row_slices(x)), none) / n
    square = sum((np.square(compressed(chunk) - mean).sum(axis=0) for chunk in row_slices(x)), none)
    return Tails(mean, np.sqrt(square / n))


def has_heavy_tails(x: Samples) -> bool:
    """Whether at least half of the features of samples have a kurtosis above 50.

    Features of two values do not count, as nothing changes their shape. Bytes are pixels, whose range is narrow. The
    rows looked at are those of ``robust_units``.

    >>> random = np.random.default_rng(0)
    >>> has_heavy_tails(random.standard_normal((1000, 3))), has_heavy_tails(random.lognormal(0, 2, (1000, 3)))
    (False, True)
    """
    if x.dtype == np.uint8:
        return False
    values = _some_rows(x)
    many = ((values != values.min(axis=0)) & (values != values.max(axis=0))).any(axis=0)
    halves = values[:, many] / 2  # whose differences cannot overflow
    distance = halves - halves.mean(axis=0)
    distance /= np.abs(distance).max(axis=0)  # so that fourth powers neither overflow nor vanish
    kurtosis = (distance**4).mean(axis=0) / np.square(np.square(distance).mean(axis=0))
    return bool(many.any() and np.mean(kurtosis > _HEAVY) >= 0.5)


def _some_rows(x: Samples) -> Floats:
    """Return random rows, flat; the same data gives the same rows."""
    n, features = int(x.shape[0]), int(np.prod(x.shape[1:]))
    size = min(n, _MOST_ROWS, max(_LEAST_ROWS, _MOST_ENTRIES // max(1, features)))
    rows = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    return dense(x[rows]).reshape(size, -1)


def dense(x: Any) -> Floats:
    """Return samples as an array in double precision."""
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x, dtype=np.float64)
