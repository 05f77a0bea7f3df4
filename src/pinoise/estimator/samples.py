"""Samples as scikit-learn has them: what ``fit`` learns of frames and gaps, what is checked, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp
from sklearn.utils.validation import validate_data
from torch import Tensor

from pinoise.data.arrays import ArrayEncoding, has_gaps
from pinoise.data.checks import check_finite
from pinoise.data.dataset import Dataset, Part, Samples
from pinoise.data.formats.memory import InMemory, is_table, like_frame, to_arrow, to_samples, with_numbers
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import ArrayPreparation, Preparation, TablePreparation
from pinoise.data.readers import from_arrays
from pinoise.data.table.cells import first_missing
from pinoise.data.table.encoding import TableEncoding
from pinoise.data.table.kinds import names_rows
from pinoise.data.table.numbers import NumericColumn
from pinoise.errors import UserError
from pinoise.estimator.parameters import COLUMNS, rows_of_pixels

Array = npt.NDArray[Any]


def learn_samples(
    estimator: Any, X: Any, options: ReadOptions, image_shape: tuple[int, ...] | None
) -> tuple[Dataset, Preparation]:
    """Return samples to fit an estimator on, and how later ones become features.

    Args:
        estimator: which learns the number and the names of the features.
        X: samples.
        options: what is said of the columns of a table.
        image_shape: the shape of a sample that is an image.
    """
    if isinstance(X, str | Path):
        raise UserError(f"X is {str(X)!r}, the name of a file: read it first, as with pandas.read_csv({str(X)!r}).")
    named = [name for name in COLUMNS if getattr(options, name)]
    if named and not is_table(X):
        raise UserError(f"{named[0]} is about columns, and X is no data frame: leave it out.")
    numbers = to_samples(X, where="X") if isinstance(X, list | tuple | Tensor) else X
    if named or needs_encoding(X) or has_gaps(numbers):
        validate_data(estimator, X, reset=True, skip_check_array=True)
        data, preparation = from_arrays(X, options=options, name="X")
        return data, preparation
    x = checked_numbers(estimator, X, fitting=True, image_shape=image_shape)
    names = tuple(getattr(estimator, "feature_names_in_", ()))
    if not names or image_shape is not None or len(set(names)) < len(names):
        return Dataset("X", Part(x)), ArrayPreparation(ArrayEncoding(x.shape[1:], bool(sp.issparse(x))))
    plain = TableEncoding(tuple(NumericColumn(name, fill=0.0, precise=True) for name in names), None, None, (), "error")
    return Dataset("X", Part(x), feature_names=names), TablePreparation(plain)


def later_samples(estimator: Any, X: Any, preparation: Preparation, image_shape: tuple[int, ...] | None) -> Samples:
    """Return samples as those that an estimator was fitted on."""
    if not takes_numbers(preparation) or (is_table(X) and not _has_numbers_alone(to_arrow(X, where="X"))):
        return preparation.read(InMemory(X, name="X"), labelled=False).train.x
    return checked_numbers(estimator, X, fitting=False, image_shape=image_shape)


def takes_numbers(preparation: Preparation) -> bool:
    """Whether numbers are features as they are: in an array without gaps, or in a frame of nothing else.

    >>> takes_numbers(ArrayPreparation(ArrayEncoding((3,))))
    True
    """
    encoding = preparation.encoding
    if isinstance(encoding, ArrayEncoding):
        return encoding.gaps is None
    plain = all(column == NumericColumn(column.name, fill=0.0, precise=True) for column in encoding.columns)
    return plain and encoding == replace(encoding, label=None, labels=None, dropped=(), missing="error", na=())


def features_of(preparation: Preparation) -> tuple[int, tuple[str, ...]]:
    """Return how many features samples have before they are encoded, and their names, if they have any."""
    encoding = preparation.encoding
    if isinstance(encoding, ArrayEncoding):
        return int(np.prod(encoding.raw_shape)), encoding.feature_names or ()
    names = tuple(column.name for column in encoding.columns)
    return len(names), names


def as_given(preparation: Preparation, features: Array, X: Any, x: Samples) -> Any:
    """Return features, in the units of the data, in the shape and the types that samples were given in.

    Args:
        preparation: how the samples became features.
        features: one row for each sample.
        X: the samples as they were given.
        x: the same as the standardiser sees them.
    """
    if isinstance(preparation, TablePreparation) and not takes_numbers(preparation):
        return like_frame(preparation.encoding.decode(features, to_arrow(X, where="X")), X)
    if is_table(X):
        return like_frame(with_numbers(features, to_arrow(X, where="X")), X)
    gaps = preparation.encoding.gaps if isinstance(preparation, ArrayPreparation) else None
    rows = features if gaps is None else gaps.undo(features, np.asarray(X, dtype=np.float64))
    return in_precision(rows, x).reshape(np.shape(X))


def in_precision(values: Array, x: Samples) -> Array:
    """Return values in the precision of samples: single for bytes."""
    return values.astype(x.dtype if np.issubdtype(x.dtype, np.floating) else np.float32)


def checked_numbers(estimator: Any, X: Any, *, fitting: bool, image_shape: tuple[int, ...] | None) -> Samples:
    """Return samples as scikit-learn checks them, with a non-finite entry named by row and column.

    Args:
        estimator: whose features they must have, or which learns them.
        X: samples.
        fitting: whether it learns them.
        image_shape: the shape of a sample that is an image.
    """
    images = image_shape is not None
    if sp.issparse(X) or isinstance(X, Tensor | np.ma.MaskedArray):
        X = to_samples(X, where="X")  # of which scikit-learn checks less
    try:
        x = validate_data(
            estimator,
            rows_of_pixels(X, image_shape) if image_shape is not None else X,
            reset=fitting,
            accept_sparse=False if images else "csr",
            dtype=[np.float64, np.float32, np.uint8] if images else [np.float64, np.float32],
            ensure_min_samples=2 if fitting else 1,
            ensure_all_finite=False,
        )
    except OverflowError:
        raise UserError("X holds a whole number beyond the range of floating-point numbers.") from None
    except (TypeError, ValueError):
        check_cells(X)
        raise
    sparse = bool(sp.issparse(x))
    samples: Samples = sp.csr_array(x) if sparse else x  # one type for every sparse input
    check_finite(samples, getattr(estimator, "feature_names_in_", None), where="X")
    return samples if image_shape is None else x.reshape(len(x), *image_shape)


def check_cells(X: Any) -> None:
    """Raise an error that names the first cell that is text or missing, in an array or a pandas frame of objects.

    >>> check_cells(np.array([[1, 2], [3, "x"]], dtype=object))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: X has 'x' in row 1 (counted from 0), feature 1: give a number, as in training.
    """
    cells, names = np.asarray(X), getattr(X, "columns", None)
    if cells.dtype != object or cells.ndim != 2:
        return
    for (row, feature), cell in np.ndenumerate(cells):
        try:
            float(cell)
        except (TypeError, ValueError):
            if not isinstance(cell, str) and type(cell).__name__ != "NAType":
                return  # scikit-learn has a sentence of its own for objects
            name = feature if names is None else names[feature]
            raise UserError(
                f"X has {cell!r} in row {row} (counted from 0), feature {name!r}: give a number, as in training."
            ) from None


def needs_encoding(X: object) -> bool:
    """Whether an object is a data frame that is not all numbers, lacks some, or has a column that only names rows.

    >>> needs_encoding(pa.table({"age": [20, 40]})), needs_encoding(pa.table({"age": [20, None]}))
    (False, True)
    """
    if not is_table(X):
        return False
    table = to_arrow(X, where="X")
    columns = zip(table.column_names, table.itercolumns(), strict=True)
    return not _has_numbers_alone(table) or any(
        first_missing(cells) >= 0 or names_rows(name, cells, rows=len(cells), first=name == table.column_names[0])
        for name, cells in columns
    )


def _has_numbers_alone(table: Any) -> bool:
    """Whether the columns of an Arrow table hold numbers or truth values."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return all(any(is_kind(column.type) for is_kind in plain) for column in table.itercolumns())
