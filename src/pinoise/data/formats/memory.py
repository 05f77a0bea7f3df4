"""Data that is already in memory: arrays, sparse matrices, tensors, lists, and data frames with their labels."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from pinoise.data.checks import check_sparse
from pinoise.data.dataset import Array, Part, RawArrays, Samples
from pinoise.data.table.batches import Table, held_table
from pinoise.data.table.cells import checked
from pinoise.data.table.labels import label_array
from pinoise.data.table.numbers import NumericColumn
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
        held = checked(to_arrow(self.X, where=self.name), where=self.name)
        return held_table(held, where=self.name, y=self._labels())

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


def is_table(X: object) -> bool:
    """Whether an object has named columns: a data frame, one that is still to be computed, or Arrow data.

    >>> is_table(pa.table({"age": [20, 40]})), is_table(np.eye(2))
    (True, False)
    """
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    return isinstance(X, pa.Table | pa.RecordBatch | pa.RecordBatchReader) or (
        hasattr(X, "columns") and any(hasattr(X, way) for way in ("iloc", "to_arrow", "collect", "__arrow_c_stream__"))
    )


def collected(X: Any) -> Any:
    """Return a data frame that is still to be computed, or read, as one in memory; anything else as it is."""
    if isinstance(X, pa.RecordBatchReader):
        return X.read_all()
    is_lazy = hasattr(X, "collect") and hasattr(X, "collect_schema") and not hasattr(X, "to_arrow")
    return X.collect() if is_lazy else X


def to_arrow(X: Any, *, where: str) -> Any:
    """Return a data frame as an Arrow table, without importing the data frame's library."""
    X = collected(X)
    if isinstance(X, pa.Table):
        return X
    what = f"{where}, a {type(X).__name__},"
    try:
        if hasattr(X, "iloc"):  # pandas: column by column, which leaves its index out and can name a bad column
            names, arrays = [str(name) for name in X.columns], list[Any]()
            for position, name in enumerate(names):
                what = f"{where}: column {name!r}"
                arrays.append(pa.array(X.iloc[:, position], from_pandas=True))
            return pa.Table.from_arrays(arrays, names=names)
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        return pa.table(X)  # by Arrow's C interface
    except (pa.ArrowException, NotImplementedError, RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{what} cannot be read ({error}): make every column all numbers or all text.") from error


def with_numbers(values: npt.NDArray[Any], table: Any) -> Any:
    """Return an Arrow table of numbers and truth values with other values, (rows, columns), in its types.

    >>> with_numbers(np.array([[1.6, 0.9]]), pa.table({"n": [1], "f": [False]})).to_pydict()
    {'n': [2], 'f': [True]}
    """

    def cells(some: npt.NDArray[Any], column: Any) -> Any:
        if pa.types.is_boolean(column.type):
            return pa.array(some >= 0.5)
        return NumericColumn("", 0.0).decode(some[:, None], column.combine_chunks())

    return pa.table(list(map(cells, values.T, table.itercolumns())), names=table.column_names)


def like_frame(table: Any, X: Any) -> Any:
    """Return an Arrow table as a data frame of the library of ``X``, in its types where they hold the values.

    >>> like_frame(pa.table({"a": [1]}), pa.table({"a": [0]})).to_pydict()
    {'a': [1]}
    """
    if hasattr(X, "iloc"):
        frame = table.to_pandas()
        frame.index, frame.columns = X.index, X.columns
        return frame.astype(X.dtypes.to_dict(), errors="ignore")
    if type(X).__module__.partition(".")[0] == "polars":
        return sys.modules["polars"].from_arrow(table).cast(dict(X.collect_schema()), strict=False)
    return table
