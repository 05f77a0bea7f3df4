"""Standardisation: the units in which encoders see samples and in which noise is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, row_slices

# A feature that varies by less than this share of its size is constant up to rounding.
_DEAD_SHARE = 1e-9


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
        n = x.shape[0]
        if sp.issparse(x):
            centred = x.astype(np.float64).tocsc(copy=True)
            mean = np.asarray(centred.sum(axis=0)).ravel() / n
            filled = np.diff(centred.indptr)
            centred.data -= np.repeat(mean, filled)
            # The zeros of a sparse column are all at distance mean from it.
            square = np.asarray(centred.multiply(centred).sum(axis=0)).ravel() + (n - filled) * mean**2
        else:
            mean = sum(x[chunk].sum(axis=0, dtype=np.float64) for chunk in row_slices(x)) / n
            square = sum(np.square(x[chunk] - mean).sum(axis=0) for chunk in row_slices(x))
        scale = np.sqrt(square / n)
        return cls(mean=np.asarray(mean), scale=np.where(scale > _DEAD_SHARE * np.abs(mean), scale, 0.0))

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
