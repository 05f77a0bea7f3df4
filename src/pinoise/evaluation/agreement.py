"""How far two embeddings of the same rows agree about who is near whom, which needs no labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError
from pinoise.evaluation.knn import knn_neighbours

AGREEING = 10  # neighbours of a row that are compared


def neighbour_agreement(a: np.ndarray, b: np.ndarray, *, k: int = AGREEING) -> float:
    """Return the mean share of a row's ``k`` nearest other rows that two embeddings have in common.

    It is 1 for the same neighbourhoods and k / (n − 1) for unrelated ones.

    >>> x = np.array([[0.0], [1.0], [5.0], [6.5]])
    >>> neighbour_agreement(x, 3 * x, k=1), neighbour_agreement(x, np.array([[0.0], [9.0], [0.1], [9.1]]), k=1)
    (1.0, 0.0)
    """
    if len(a) != len(b):
        raise UserError(f"the embeddings have {len(a)} and {len(b)} rows: they must be of the same rows.")
    if not 1 <= k < len(a):
        raise UserError(f"k is {k}, but must be from 1 to the number of other rows, which is {len(a) - 1}.")
    ours, theirs = _others(a, k), _others(b, k)
    common = (ours[:, :, None] == theirs[:, None, :]).any(axis=2)  # (n, k)
    return float(common.mean())


def _others(x: np.ndarray, k: int) -> npt.NDArray[np.int64]:
    """Return the ``k`` nearest other rows of each row, (n, k)."""
    near = knn_neighbours(x, x, k=k + 1)
    itself = near == np.arange(len(x))[:, None]
    itself[~itself.any(axis=1), -1] = True  # a row with many copies may not be among its own neighbours
    others: npt.NDArray[np.int64] = near[~itself].reshape(len(x), k)
    return others
