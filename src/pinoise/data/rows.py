"""Batches: whole-batch gathers of standardised rows as tensors, from memory, a file or a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from pinoise.data.dataset import Origin, Samples, row_slices
from pinoise.data.layout import AS_IS, to_image_layout
from pinoise.data.lazy import LazyArray
from pinoise.data.moments import row_divisors
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError

FARTHEST = 1e16
"""The largest standardised value: an encoder can still weigh it and square it in single precision."""

_LARGEST_PIXEL = 1e18  # of mean and scale of images in single precision


class Rows(Protocol):
    """Standardised samples that can be gathered by row number."""

    def __len__(self) -> int:
        """The number of samples."""
        ...

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return the samples (m, *shape) of these rows, on the CPU."""
        ...


class LazyRows:
    """Samples of an array in a file, a sparse matrix or images, made dense and standardised batch by batch."""

    def __init__(
        self, x: Samples, standardizer: Standardizer, *, dtype: torch.dtype, origin: Origin | None = None
    ) -> None:
        self.origin = origin
        self._x = x
        self._to_standard = _ToStandard(standardizer, dtype)

    @property
    def in_files(self) -> bool:
        """Whether rows are read from a disk, so that they are better gathered before they are needed."""
        return isinstance(self._x, LazyArray)

    def __len__(self) -> int:
        return int(self._x.shape[0])

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._to_standard(self._x[rows.numpy()], rows)


class DenseRows:
    """Samples standardised once into a copy; the original samples are not kept."""

    def __init__(self, x: npt.NDArray[Any], standardizer: Standardizer, *, dtype: torch.dtype) -> None:
        self._memory = torch.empty(x.shape, dtype=dtype)
        to_standard = _ToStandard(standardizer, dtype)
        for chunk in row_slices(x):
            self._memory[chunk] = to_standard(x[chunk], range(chunk.start, chunk.stop))

    def __len__(self) -> int:
        return len(self._memory)

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._memory.index_select(0, rows)


class _ToStandard:
    """Standardises samples into tensors."""

    def __init__(self, standardizer: Standardizer, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._unit_rows = standardizer.unit_rows
        self._compressed = None if standardizer.tails is None else standardizer.compressed
        self._layout = standardizer.layout
        self._mean = torch.from_numpy(standardizer.mean)
        self._inverse_scale = torch.from_numpy(1 / np.where(standardizer.live, standardizer.scale, np.inf))
        sizes = [abs(self._mean).max(), self._inverse_scale.max(), 1 / self._inverse_scale.max()]
        self._pixels = dtype if max(map(float, sizes)) < _LARGEST_PIXEL else torch.float64
        if self._layout != AS_IS:  # pixels are small numbers: the precision of batches is enough
            self._mean, self._inverse_scale = self._mean.to(self._pixels), self._inverse_scale.to(self._pixels)

    def __call__(self, x: Samples, rows: Sequence[int] | Tensor) -> Tensor:
        standard = self._standard(x)
        if x.dtype != np.uint8 and not bool(standard.abs().max() <= FARTHEST):
            raise _too_far(standard, rows)
        return standard

    def _standard(self, x: Samples) -> Tensor:
        if self._layout != AS_IS:
            pixels = torch.from_numpy(to_image_layout(np.asarray(x), self._layout))
            return pixels.to(self._pixels).sub_(self._mean).mul_(self._inverse_scale).to(self._dtype)
        dense: npt.NDArray[Any] = x.toarray() if isinstance(x, sp.csr_array) else np.asarray(x)
        # In double precision, so that features with large offsets lose nothing and sparse equals dense to the bit.
        dense = dense.astype(np.float64)
        if self._unit_rows:
            dense /= row_divisors(x)
        standard = torch.from_numpy(dense).sub_(self._mean).mul_(self._inverse_scale)
        if self._compressed is not None:
            standard = torch.from_numpy(self._compressed(standard.numpy()))
        return standard.to(self._dtype)


def _too_far(standard: Tensor, rows: Sequence[int] | Tensor) -> UserError:
    """Return the error for samples of which a standardised value cannot be computed with."""
    number, *place = (int(index) for index in (~(standard.abs() <= FARTHEST)).nonzero()[0])
    where = place[0] if len(place) == 1 else tuple(place)
    return UserError(
        f"row {int(rows[number])} (counted from 0), feature {where} is more than {FARTHEST:g} standard deviations away "
        "from the training data: correct or remove it."
    )


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
    if standardizer.layout != AS_IS or isinstance(x, np.memmap) or not isinstance(x, np.ndarray):
        return LazyRows(x, standardizer, dtype=dtype, origin=origin)
    return DenseRows(np.asarray(x), standardizer, dtype=dtype)
