"""Data that is already in memory: arrays, sparse matrices, tensors, lists and data frames."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Samples
from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.preparation.arrays import ArrayPreparation, learn_arrays
from pinoise.data.preparation.images import ImagePreparation
from pinoise.data.preparation.kinds import Preparation, refuse_table_options, wrong_kind
from pinoise.data.preparation.labels import label_array, learn_labels
from pinoise.data.preparation.learning import MAX_CATEGORIES, learn_table
from pinoise.data.preparation.tables import MissingPolicy, TablePreparation, prepared_table
from pinoise.errors import UserError


def from_arrays(
    X: object,
    y: object = None,
    *,
    name: str = "array",
    label: str | int | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: MissingPolicy = "median",
    max_categories: int = MAX_CATEGORIES,
) -> tuple[Dataset, Preparation]:
    """Return samples in memory as a data set, with the preparation that reads later ones the same way.

    ``X`` is an array of any rank, a SciPy sparse matrix, a torch tensor, nested lists, or a data frame of pandas,
    polars, Arrow or another library that speaks Arrow's or the data-frame interchange protocol. Labels are ``y``,
    or the column ``label`` of ``X``. The other arguments are for data frames, as in ``read_file``.

    >>> data, _ = from_arrays([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    >>> data.train.y.tolist(), data.class_names
    ([0, 1], ('no', 'yes'))
    """
    if y is not None and label is not None:
        raise UserError(f"labels were given twice, as y and as label={label!r}: leave one out.")
    if is_table(X):
        table = to_table(X, where=name)
        apart = None if y is None else to_labels(y, where=f"{name}, y")
        preparation, notes = learn_table(
            table,
            label=label,
            labels=None if apart is None else learn_labels(apart, where=f"{name}, y"),
            categorical=categorical,
            drop=drop,
            missing=missing,
            max_categories=max_categories,
            where=name,
        )
        return prepared_table(table, preparation, y=apart, name=name, where=name, notes=notes), preparation
    refuse_table_options(categorical, drop, where=name)
    return learn_arrays(_raw(X, y, name), name=name, where=name, label=label)


def from_arrays_prepared(
    X: object, y: object = None, *, preparation: Preparation, name: str = "array", labelled: bool = True
) -> Dataset:
    """Return later samples in memory, read as ``preparation`` says; ``labelled=False`` leaves labels unread."""
    if is_table(X) != isinstance(preparation, TablePreparation):
        raise wrong_kind(preparation, name)
    if isinstance(preparation, ImagePreparation):
        preparation = preparation.arrays
    if isinstance(preparation, ArrayPreparation):
        return preparation.apply(_raw(X, y, name), name=name, labelled=labelled, where=name)
    return prepared_table(
        to_table(X, where=name),
        preparation,
        y=None if y is None else to_labels(y, where=f"{name}, y"),
        name=name,
        labelled=labelled,
        where=name,
    )


def is_table(X: object) -> bool:
    """Whether an object has named columns: a data frame or an Arrow table."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    return isinstance(X, pa.Table) or (
        hasattr(X, "columns")
        and any(hasattr(X, way) for way in ("iloc", "to_arrow", "__arrow_c_stream__", "__dataframe__"))
    )


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
    tensor = _from_torch(y, where)
    if tensor is not None:
        return label_array(tensor, where=where)
    if hasattr(y, "iloc"):
        if getattr(y, "ndim", 1) == 2 and len(y.columns) == 1:  # type: ignore[attr-defined]
            y = y.iloc[:, 0]
        return label_array(pa.array(y, from_pandas=True) if getattr(y, "ndim", 1) == 1 else np.asarray(y), where=where)
    if hasattr(y, "to_arrow"):
        return label_array(y.to_arrow(), where=where)
    return label_array(y if isinstance(y, pa.Array | pa.ChunkedArray | np.ndarray) else _as_list(y, where), where=where)


def to_samples(X: Any, *, where: str) -> Samples:
    """Return samples in memory as a NumPy array or a sparse matrix of rows."""
    if sp.issparse(X):
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


def _raw(X: object, y: object, where: str) -> RawArrays:
    labels: Array | None = None
    if y is not None:
        labels = np.asarray(to_labels(y, where=f"{where}, y").to_numpy(zero_copy_only=False))
    return RawArrays(RawPart(to_samples(X, where=where), labels))


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
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UserError(
            f"{where}: column {name!r} mixes types or holds objects: make it all numbers or all text."
        ) from error


def _as_list(y: Any, where: str) -> list[Any]:
    try:
        return list(y)
    except TypeError as error:
        raise UserError(f"{where} is {y!r}: labels are one value for each row.") from error
