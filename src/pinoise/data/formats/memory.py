"""Data that is already in memory: arrays, sparse matrices, tensors, lists and data frames."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from pinoise.data.dataset import Samples
from pinoise.data.formats.arrow import (
    checked,
    first_missing,
    first_true,
    is_text,
    label_array,
    looks_like_number,
    text_of,
)
from pinoise.data.formats.raw import Array, RawArrays, RawPart, RawTable
from pinoise.data.messages import check_memory
from pinoise.errors import UserError

NAME = "array"  # what messages call samples in memory


@dataclass(frozen=True)
class InMemory:
    """Samples in memory with their labels, and the name that messages call them by."""

    X: Any
    y: object = None
    name: str = NAME

    def table(self) -> RawTable:
        """Return a data frame and its labels in Arrow's layout."""
        return RawTable(checked(to_table(self.X, where=self.name), where=self.name), y=self._labels())

    def arrays(self) -> RawArrays:
        """Return samples and labels as NumPy arrays, or the samples as a sparse matrix."""
        y = self._labels()
        labels: Array | None = None if y is None else np.asarray(y.to_numpy(zero_copy_only=False))
        return RawArrays(RawPart(to_samples(self.X, where=self.name), labels))

    def _labels(self) -> Any:
        return None if self.y is None else to_labels(self.y, where=f"{self.name}, y")


def is_table(X: object) -> bool:
    """Whether an object has named columns: a data frame or an Arrow table.

    >>> is_table(pa.table({"age": [20, 40]})), is_table(np.eye(2))
    (True, False)
    """
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    return isinstance(X, pa.Table) or (
        hasattr(X, "columns")
        and any(hasattr(X, way) for way in ("iloc", "to_arrow", "__arrow_c_stream__", "__dataframe__"))
    )


def needs_encoding(X: object) -> bool:
    """Whether an object is a data frame that is not all numbers: it has text, categories, dates or missing values.

    >>> needs_encoding(pa.table({"age": [20, 40]})), needs_encoding(pa.table({"age": [20, None]}))
    (False, True)
    """
    if not is_table(X):
        return False
    table = to_table(X, where="X")
    return any(not _is_plain(column.type) or first_missing(column) >= 0 for column in table.itercolumns())


def check_numbers(X: Any, *, where: str) -> None:
    """Raise an error that names the first cell of a data frame, or of an array of objects, that is text or missing.

    >>> check_numbers(np.array([[1, 2], [3, "x"]], dtype=object), where="X")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: X has 'x' in row 1 (counted from 0), feature 1: give a number, as in training.
    """
    if is_table(X):
        table = to_table(X, where=where)
        for name, column in zip(table.column_names, table.itercolumns(), strict=True):
            row = first_missing(column)
            if row < 0 and not _is_plain(column.type):
                texts = text_of(column) if is_text(column.type) or pa.types.is_dictionary(column.type) else None
                row = 0 if texts is None else first_true(pc.invert(looks_like_number(texts)))
            if row >= 0:
                raise _no_number(column[row].as_py(), row, name, where)
    elif isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2:
        for (row, feature), cell in np.ndenumerate(X):
            if type(cell).__name__ == "NAType" or (isinstance(cell, str) and not _is_written_number(cell)):
                raise _no_number(cell, row, feature, where)


def _no_number(cell: object, row: int, feature: str | int, where: str) -> UserError:
    is_missing = cell is None or type(cell).__name__ == "NAType" or cell != cell
    found, advice = ("a missing value", "fill or remove it") if is_missing else (f"{cell!r}", "give a number")
    return UserError(
        f"{where} has {found} in row {row} (counted from 0), feature {feature!r}: {advice}, as in training."
    )


def _is_written_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_plain(kind: Any) -> bool:
    """Whether a type of Arrow holds numbers or truth values."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def to_table(X: Any, *, where: str) -> Any:
    """Return a data frame as an Arrow table, without importing the data frame's library."""
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "iloc"):  # pandas: column by column, which leaves its index out and can name a bad column
        names = [str(name) for name in X.columns]
        arrays = [_pandas_column(X.iloc[:, position], name, where) for position, name in enumerate(names)]
        return pa.Table.from_arrays(arrays, names=names)
    try:
        if hasattr(X, "to_arrow"):
            return X.to_arrow()
        if hasattr(X, "__arrow_c_stream__"):
            return pa.table(X)
        from pyarrow.interchange import from_dataframe

        return from_dataframe(X)
    except (pa.ArrowException, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{where}, a {type(X).__name__}, cannot be read as a table: {error}.") from error


def to_labels(y: object, *, where: str) -> Any:
    """Return labels in memory as an Arrow array."""
    return label_array(_plain_labels(y, where), where=where)


def _plain_labels(y: Any, where: str) -> Any:
    tensor = _from_torch(y, where)
    if tensor is not None:
        return tensor
    if hasattr(y, "iloc"):
        if y.ndim == 2 and len(y.columns) == 1:
            y = y.iloc[:, 0]
        return pa.array(y, from_pandas=True) if y.ndim == 1 else np.asarray(y)
    if hasattr(y, "to_arrow"):
        return y.to_arrow()
    if isinstance(y, pa.Array | pa.ChunkedArray | np.ndarray):
        return y
    try:
        return list(y)
    except TypeError as error:
        raise UserError(f"{where} is {y!r}: labels are one value for each row.") from error


def to_samples(X: Any, *, where: str) -> Samples:
    """Return samples in memory as a NumPy array or a sparse matrix of rows."""
    if sp.issparse(X):
        check_sparse(X, where=where)
        matrix: sp.csr_array = sp.csr_array(cast(Any, X))
        return matrix
    tensor = _from_torch(X, where)
    if tensor is not None:
        return tensor
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise UserError(f"{where} has masked values: fill them in first.")
    if isinstance(X, np.ndarray):
        return X
    try:
        return np.asarray(X)
    except ValueError as error:
        raise UserError(f"{where} has rows of different lengths: samples must all have one shape.") from error


def check_sparse(matrix: Any, *, where: str) -> None:
    """Refuse a sparse matrix whose indices point outside it: compiled code would read other memory there.

    It takes a pass over the indices.

    >>> matrix = sp.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> matrix.indices[0] = 9
    >>> check_sparse(matrix, where="X")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: X is a broken sparse matrix (indices must be < 2): make it again.
    """
    check_memory(8 * max(matrix.shape), where=where, what=f"a sparse matrix of shape {matrix.shape}")
    try:
        if matrix.format in ("csr", "csc", "bsr"):  # a copy of the frame alone, because the check may change it
            parts = (matrix.data, matrix.indices, matrix.indptr)
            type(matrix)(parts, shape=matrix.shape, copy=False).check_format(full_check=True)
        elif matrix.format == "coo":
            type(matrix)((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape, copy=False)
    except ValueError as error:
        raise UserError(f"{where} is a broken sparse matrix ({error}): make it again.") from None


def _from_torch(value: Any, where: str) -> Array | None:
    torch = sys.modules.get("torch")  # a tensor can only come from a program that has imported torch
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if value.layout != torch.strided:
        raise UserError(f"{where} is a sparse tensor: give it as a SciPy sparse matrix or a dense tensor.")
    value = value.detach().cpu()
    return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())


def _pandas_column(column: Any, name: str, where: str) -> Any:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{where}: column {name!r} mixes types or holds objects: make it all numbers or all text."
        ) from error
