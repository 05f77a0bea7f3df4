"""Batches: whole-batch gathers of standardised rows as tensors, from memory, a file or a sparse matrix."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from pinoise.data.dataset import Origin, Samples, row_slices
from pinoise.data.layout import AS_IS, to_image_layout
from pinoise.data.lazy import LazyArray
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError

FARTHEST = 1e16
"""The largest standardised value: an encoder can still weigh it and square it in single precision."""


class Rows(Protocol):
    """Standardised samples that can be gathered by row number."""

    def __len__(self) -> int:
        """The number of samples."""

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return the samples (m, *shape) of these rows, on the CPU."""


class LazyRows:
    """Samples of any kind, made dense and standardised batch by batch."""

    def __init__(
        self, x: Samples, standardizer: Standardizer, *, dtype: torch.dtype, origin: Origin | None = None
    ) -> None:
        self.in_files = isinstance(x, LazyArray)  # so that rows are better gathered before they are needed
        self.origin, self._x, self._standardizer, self._dtype = origin, x, standardizer, dtype
        self._mean = torch.from_numpy(standardizer.mean).to(dtype)
        self._inverse = torch.from_numpy(standardizer.inverse_scale).to(dtype)

    def __len__(self) -> int:
        return int(self._x.shape[0])

    def __getitem__(self, rows: Tensor) -> Tensor:
        x = self._x[rows.numpy()]
        dense: npt.NDArray[Any] = x.toarray() if isinstance(x, sp.csr_array) else np.asarray(x)
        if (layout := self._standardizer.layout) != AS_IS and x.dtype.itemsize <= 4:
            # Pixels are small numbers: the precision of batches is enough.
            pixels = torch.from_numpy(to_image_layout(dense, layout)).to(self._dtype)
            return pixels.sub_(self._mean).mul_(self._inverse)
        # In double precision, so that features with large offsets lose nothing and sparse equals dense to the bit.
        standard = torch.from_numpy(self._standardizer.apply(dense.astype(np.float64))).to(self._dtype)
        if x.dtype != np.uint8 and not bool(standard.abs().max() <= FARTHEST):
            raise _too_far(standard, rows)
        return standard


def _too_far(standard: Tensor, rows: Tensor) -> UserError:
    """Return the error for samples of which a standardised value cannot be computed with."""
    number, *place = (int(index) for index in (~(standard.abs() <= FARTHEST)).nonzero()[0])
    where = f"row {int(rows[number])} (counted from 0), feature {place[0] if len(place) == 1 else tuple(place)}"
    what = f"is more than {FARTHEST:g} standard deviations away from the training data"
    return UserError(f"{where} {what}: correct or remove it.")


def make_rows(
    x: Samples, standardizer: Standardizer, *, dtype: torch.dtype = torch.float32, origin: Origin | None = None
) -> Rows:
    """Return the samples as a source of standardised batches; images stay as they are stored until they are indexed.

    ``origin`` says which images of their source they are (``Part.origin``), for masks that come with the source.

    >>> x = np.array([[0.0], [2.0], [4.0]])
    >>> rows = make_rows(x, Standardizer.fit(x))
    >>> len(rows), rows[torch.tensor([2, 0])].flatten()
    (3, tensor([ 1.2247, -1.2247]))
    """
    lazy = LazyRows(x, standardizer, dtype=dtype, origin=origin)
    if standardizer.layout != AS_IS or isinstance(x, np.memmap) or not isinstance(x, np.ndarray):
        return lazy
    standard = torch.empty(x.shape, dtype=dtype)  # a copy, so that the samples need not be kept
    for chunk in row_slices(x):
        standard[chunk] = lazy[torch.arange(chunk.start, chunk.stop)]
    return standard
