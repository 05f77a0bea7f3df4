"""Standardisation: the units in which encoders see samples and in which noise is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples

_CHUNK_BYTES = 1 << 26
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
            mean = np.asarray(x.mean(axis=0), dtype=np.float64).ravel()
            centred = x.tocsc(copy=True).astype(np.float64)
            filled = np.diff(centred.indptr)
            centred.data -= np.repeat(mean, filled)
            # The zeros of a sparse column are all at distance mean from it.
            square = np.asarray(centred.multiply(centred).sum(axis=0)).ravel() + (n - filled) * mean**2
        else:
            mean = sum(chunk.sum(axis=0, dtype=np.float64) for chunk in _chunks(x)) / n
            square = sum(np.square(chunk - mean).sum(axis=0) for chunk in _chunks(x))
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


def _chunks(x: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    step = max(1, _CHUNK_BYTES // max(1, 8 * int(np.prod(x.shape[1:]))))
    for start in range(0, len(x), step):
        yield x[start : start + step]
