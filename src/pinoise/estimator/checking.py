"""What ``fit`` and ``transform`` check: samples as scikit-learn has them, frames, and the state to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from sklearn.utils.validation import validate_data
from torch import Tensor

from pinoise.data.arrays import has_gaps
from pinoise.data.checks import check_finite
from pinoise.data.dataset import Samples
from pinoise.data.formats.memory import to_samples
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import Preparation
from pinoise.data.readers import from_arrays
from pinoise.data.table.cells import first_missing, first_true, is_text, looks_like_number, text_of
from pinoise.data.table.frames import is_table, to_arrow
from pinoise.errors import UserError
from pinoise.estimator.parameters import rows_of_pixels
from pinoise.training.checkpoint import Progress
from pinoise.training.run import Earlier


def learned_preparation(X: Any, columns: Mapping[str, Any]) -> tuple[Preparation | None, list[str]]:
    """Return how a data frame, or rows with gaps, become features, with notes; None for numbers without gaps.

    Args:
        X: samples.
        columns: what is said of the columns of a table, from ``columns_from``.
    """
    if isinstance(X, str | Path):
        raise UserError(f"X is {str(X)!r}, the name of a file: read it first, as with pandas.read_csv({str(X)!r}).")
    named = len(columns) > 2  # beside what becomes of gaps
    if named and not is_table(X):
        raise UserError(f"{next(iter(columns))} is about columns, and X is no data frame: leave it out.")
    numbers = to_samples(X, where="X") if isinstance(X, list | tuple | Tensor) else X
    if not named and not needs_encoding(X) and not has_gaps(numbers):
        return None, []
    data, preparation = from_arrays(X, options=ReadOptions(**columns), name="X")
    return preparation, list(data.notes)


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
        check_numbers(X, where="X")  # which names the cell, where it is a cell
        raise
    sparse = bool(sp.issparse(x))
    samples: Samples = sp.csr_array(x) if sparse else x  # one type for every sparse input
    check_finite(samples, getattr(estimator, "feature_names_in_", None), where="X")
    return samples if image_shape is None else x.reshape(len(x), *image_shape)


def needs_encoding(X: object) -> bool:
    """Whether an object is a data frame that is not all numbers: it has text, categories, dates or missing values.

    >>> needs_encoding(pa.table({"age": [20, 40]})), needs_encoding(pa.table({"age": [20, None]}))
    (False, True)
    """
    if not is_table(X):
        return False
    table = to_arrow(X, where="X")
    return any(not _is_plain(column.type) or first_missing(column) >= 0 for column in table.itercolumns())


def check_numbers(X: Any, *, where: str) -> None:
    """Raise an error that names the first cell of a data frame, or of an array of objects, that is text or missing.

    >>> check_numbers(np.array([[1, 2], [3, "x"]], dtype=object), where="X")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: X has 'x' in row 1 (counted from 0), feature 1: give a number, as in training.
    """
    if is_table(X):
        table = to_arrow(X, where=where)
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


class Trained(NamedTuple):
    """The state that training ended in."""

    weights: dict[str, Tensor]  # of the whole model
    progress: Progress
    data: str  # the checksum of the samples
    seed: int
    trials: dict[str, float]  # of ``noise="auto"``, which is not tried again

    def goes_on(self, data: str) -> Earlier:
        """Return what training goes on from with samples of this checksum."""
        return Earlier(self.weights, self.progress, self.data == data)


def state_before(estimator: Any) -> Trained | None:
    """Return the state to go on from, or None if the estimator is to be fitted from the start."""
    if not estimator.warm_start or not hasattr(estimator, "embedding_"):
        return None
    state: Trained | None = estimator._trained
    if state is None:
        raise UserError(
            "warm_start goes on from the state of training, which neither PiNDA.save nor a pickle made with "
            "warm_start=False holds: fit with warm_start=False, or keep a pickle made with warm_start=True."
        )
    return state


def interruption(epochs: int) -> str:
    """Return what a user is told after an interrupt.

    >>> interruption(1)
    'fit was interrupted after 1 epoch: the model is used as it stands; warm_start=True goes on.'
    """
    done = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    return f"fit was interrupted after {done}: the model is used as it stands; warm_start=True goes on."
