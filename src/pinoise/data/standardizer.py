"""Standardisation: the units in which encoders see samples and in which noise is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices

# A feature that varies by less than a few roundings of its own size is constant.
_DEAD_SHARE = 10 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Standardizer:
    """Mean and standard deviation of every feature of the training samples; ``scale`` is 0 for dead features.

    >>> s = Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> s.scale.tolist(), s.apply(np.array([[1.0, 5.0], [3.0, 7.0]])).tolist()
    ([1.0, 0.0], [[-1.0, 0.0], [1.0, 0.0]])
    """

    mean: npt.NDArray[np.float64]  # (*shape)
    scale: npt.NDArray[np.float64]  # (*shape)

    @classmethod
    def fit(cls, x: Samples) -> Standardizer:
        """Learn from samples in two passes over bounded chunks, so that neither precision nor memory is lost."""
        mean, square = _sparse_moments(x) if isinstance(x, sp.csr_array) else _dense_moments(x)
        scale = np.sqrt(square)
        return cls(mean=mean, scale=np.where(scale > _DEAD_SHARE * np.abs(mean), scale, 0.0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.mean.shape)

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Which features vary in the training samples."""
        return self.scale > 0

    def apply(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return (x − mean) / scale, 0 for dead features."""
        divisor = np.where(self.live, self.scale, np.inf)
        standard: npt.NDArray[Any] = (x - self.mean) / divisor
        return standard

    def undo(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return standardised samples to the units of the data; a dead feature gets its constant back."""
        original: npt.NDArray[Any] = x * self.scale + self.mean
        return original


Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Mean and variance of every feature."""


def _dense_moments(x: npt.NDArray[Any]) -> Moments:
    n = len(x)
    # Sums are of distances from the first row, so that those of a constant feature are exactly zero.
    first = x[0].astype(np.float64)
    mean = first + sum((x[chunk] - first).sum(axis=0) for chunk in row_slices(x)) / n
    rest = np.zeros_like(first)  # what rounding left out of the mean
    square = np.zeros_like(first)
    for chunk in row_slices(x):
        distance = x[chunk] - mean
        rest += distance.sum(axis=0)
        square += np.square(distance, out=distance).sum(axis=0)
    return mean + rest / n, square / n


def _sparse_moments(x: sp.csr_array) -> Moments:
    n, width = x.shape
    columns = x.astype(np.float64).tocsc(copy=True)
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
