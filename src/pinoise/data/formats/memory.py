"""Data that is already in memory: arrays, sparse matrices, tensors, lists, and data frames with their labels."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from pinoise.data.checks import check_sparse
from pinoise.data.dataset import Array, Part, RawArrays, Samples
from pinoise.data.table.batches import Table
from pinoise.data.table.frames import frame_table
from pinoise.data.table.labels import label_array
from pinoise.errors import UserError

NAME = "array"  # what messages call samples in memory


@dataclass(frozen=True)
class InMemory:
    """Samples in memory with their labels, and the name that messages call them by."""

    X: Any
    y: object = None
    name: str = NAME

    def table(self) -> Table:
        """Return a data frame and its labels as a stream of Arrow batches."""
        return frame_table(self.X, where=self.name, y=self._labels())

    def arrays(self) -> RawArrays:
        """Return samples and labels as NumPy arrays, or the samples as a sparse matrix."""
        y = self._labels()
        labels: Array | None = None if y is None else np.asarray(y.to_numpy(zero_copy_only=False))
        return RawArrays(Part(to_samples(self.X, where=self.name), labels))

    def _labels(self) -> Any:
        where = f"{self.name}, y"
        return None if self.y is None else label_array(_plain_labels(self.y, where), where=where)


def _plain_labels(y: Any, where: str) -> Any:
    y = _from_torch(y, where)
    if hasattr(y, "to_arrow"):
        return y.to_arrow()
    if isinstance(y, pa.Array | pa.ChunkedArray | np.ndarray) or hasattr(y, "iloc"):
        return np.asarray(y) if getattr(y, "ndim", 1) == 2 else y
    try:
        return list(y)
    except TypeError as error:
        raise UserError(f"{where} is {y!r}: labels are one value for each row.") from error


def to_samples(X: Any, *, where: str) -> Samples:
    """Return samples in memory as a NumPy array or a sparse matrix of rows."""
    if sp.issparse(X):
        check_sparse(X, where=where)
        return sp.csr_array(cast(Any, X))
    X = _from_torch(X, where)
    if np.ma.is_masked(X):
        raise UserError(f"{where} has masked values: fill them in first.")
    try:
        return cast(Array, np.asanyarray(X))
    except ValueError as error:
        raise UserError(f"{where} has rows of different lengths: samples must all have one shape.") from error


def _from_torch(value: Any, where: str) -> Any:
    """Return a tensor as an array, and anything else as it is."""
    torch = sys.modules.get("torch")  # a tensor can only come from a program that has imported torch
    if torch is None or not isinstance(value, torch.Tensor):
        return value
    if value.layout != torch.strided:
        raise UserError(f"{where} is a sparse tensor: give it as a SciPy sparse matrix or a dense tensor.")
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
