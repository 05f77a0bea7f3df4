"""Heavy tails: features such as amounts of money and counts, brought nearer to their middle by a logarithm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices

_HEAVY = 50.0  # kurtosis of a feature with heavy tails; a normal distribution has 3, an exponential one 9
_EQUAL = 1e-6  # quartiles that differ by less than this share of the deviation count as equal

# Of the rows that are looked at; 256 rows are always affordable.
_MOST_ROWS, _MOST_ENTRIES, _LEAST_ROWS = 4096, 1 << 22, 256
_QUARTILES_APART = 1.349  # of a normal distribution, in standard deviations

Floats = npt.NDArray[np.float64]


class Tails(NamedTuple):
    """Mean and standard deviation of features after ``arcsinh``, by which they are standardised."""

    mean: Floats  # (*shape)
    scale: Floats  # (*shape), 0 for dead features


def robust_units(x: Samples, mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return the middle of every feature, and a scale that no outlier inflates: the quartiles' distance / 1.349.

    Where the quartiles are equal, as in counts that are mostly 0, mean and deviation take their place. At most 4,096
    rows are looked at, evenly spaced, and fewer if they are wide.

    Args:
        x: samples (n, *shape).
        mean: of every feature.
        deviation: the standard deviation of every feature, 0 for dead ones.

    >>> x = np.append(np.arange(100.0), 1e6)[:, None]
    >>> [unit.round(1).tolist() for unit in robust_units(x, x.mean(axis=0), x.std(axis=0))]
    [[50.0], [37.1]]
    """
    low, middle, high = np.quantile(_evenly_spaced(x), (0.25, 0.5, 0.75), axis=0)
    apart = (high - low) / _QUARTILES_APART
    usable = apart > _EQUAL * deviation
    return np.where(usable, middle, mean), np.where(usable, apart, deviation)


def measure_tails(x: Samples, middle: Floats, scale: Floats) -> Tails:
    """Return mean and deviation of arcsinh((x − middle) / scale), in passes over bounded chunks.

    Args:
        x: samples (n, *shape).
        middle: as of ``robust_units``.
        scale: as of ``robust_units``; 0 for dead features.
    """
    divisor = np.where(scale > 0, scale, np.inf)

    def compressed(rows: slice) -> Floats:
        return np.arcsinh((_dense(x[rows]) - middle) / divisor)

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
    values = _evenly_spaced(x)
    values = values.reshape(len(values), -1)
    many = ((values != values.min(axis=0)) & (values != values.max(axis=0))).any(axis=0)
    if not many.any():
        return False
    distance = values[:, many] / 2 - (values[:, many] / 2).mean(axis=0)  # halves, whose differences cannot overflow
    distance /= np.abs(distance).max(axis=0)  # so that fourth powers neither overflow nor vanish
    kurtosis = (distance**4).mean(axis=0) / np.square(np.square(distance).mean(axis=0))
    return bool(np.mean(kurtosis > _HEAVY) >= 0.5)


def _evenly_spaced(x: Samples) -> Floats:
    n, features = int(x.shape[0]), int(np.prod(x.shape[1:]))
    size = min(n, _MOST_ROWS, max(_LEAST_ROWS, _MOST_ENTRIES // max(1, features)))
    return _dense(x[np.arange(size) * n // size])


def _dense(x: Any) -> Floats:
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x, dtype=np.float64)
