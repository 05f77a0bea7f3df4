"""Samples as scikit-learn checks them, and data frames as the command reads tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data
from torch import Tensor

from pinoise.data.checks import check_finite
from pinoise.data.dataset import Samples
from pinoise.data.formats.memory import check_numbers, is_table, needs_encoding, to_samples
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import Preparation
from pinoise.data.readers import from_arrays
from pinoise.errors import UserError
from pinoise.estimator.parameters import rows_of_pixels


def learned_table(X: Any, columns: Mapping[str, Any]) -> tuple[Preparation | None, list[str]]:
    """Return how a data frame becomes features, with notes; None for samples that are numbers already.

    Args:
        X: samples.
        columns: what is said of the columns of a table, from ``columns_from``.
    """
    named = len(columns) > 1  # beside what fills gaps
    if not needs_encoding(X) and not (named and is_table(X)):
        if named:
            raise UserError(f"{next(iter(columns))} names columns, and X is no data frame: leave it out.")
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
