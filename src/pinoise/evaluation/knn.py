"""k nearest neighbours by Euclidean distance: exact, in bounded memory, at the speed of a matrix product."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings, check_labelled

BLOCK_BYTES = 32 * 2**20
"""The most that one block of distances, or of rows in float64, takes."""

_SPARE = 8  # candidates beyond k, so that rounding and a few equal distances do not force the slow path
_FLOAT64 = 8  # bytes


def knn_neighbours(
    train: np.ndarray, test: np.ndarray, *, k: int = 5, block_bytes: int = BLOCK_BYTES
) -> npt.NDArray[np.int64]:
    """Return the rows of ``train`` nearest to each row of ``test``, nearest first: (m, k).

    Of equally distant rows the one that comes first in ``train`` is taken, whatever the size of the blocks.

    The search goes through ‖b‖² − 2ab in float64. That form cancels badly when the data lie far from the origin, so the
    training mean is subtracted first; and as it is never exact, it only proposes candidates, which are then ranked by
    the sum of squared differences. A bound on its error tells whether a neighbour may have been missed; those rows
    (many equal distances, as a rule) are compared directly with every training row.

    >>> import numpy as np
    >>> knn_neighbours(np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]]), k=2)
    array([[2, 1],
           [0, 1]])
    """
    check_embeddings(train, test)
    if not 1 <= k <= len(train):
        raise UserError(f"k is {k}, but must be from 1 to the number of training rows, which is {len(train)}.")
    mean = train.mean(axis=0, dtype=np.float64)
    candidates, limit = _candidates(train, test, mean, min(k + _SPARE, len(train)), block_bytes)
    neighbours, farthest = _rank(train, test, candidates, k, block_bytes)
    if candidates.shape[1] == len(train):
        return neighbours

    # A training row b with ‖b‖ > ‖a‖ + d_k is farther than d_k, so the error matters only for shorter ones.
    norm = np.sqrt(_squared_norms(test, mean, block_bytes))
    rounding = 2 * (train.shape[1] + 8) * np.finfo(np.float64).eps
    error = rounding * (2 * norm + np.sqrt(farthest)) ** 2
    doubtful = np.flatnonzero(farthest >= limit + norm**2 - error)
    if len(doubtful):
        different, which = np.unique(test[doubtful], axis=0, return_inverse=True)
        direct = np.stack([_nearest_directly(train, row, k, block_bytes) for row in different])
        neighbours[doubtful] = direct[which.reshape(-1)]
    return neighbours


def knn_predict(
    train: np.ndarray,
    train_labels: np.ndarray,
    test: np.ndarray,
    *,
    k: int = 5,
    block_bytes: int = BLOCK_BYTES,
) -> np.ndarray:
    """Return for each row of ``test`` the most frequent label of its ``k`` neighbours, the smallest if several are.

    >>> import numpy as np
    >>> knn_predict(np.array([[0.0], [1.0], [5.0]]), np.array([3, 3, 7]), np.array([[4.0], [0.1]]), k=1)
    array([7, 3])
    """
    if train_labels.shape != (len(train),):
        raise UserError(f"the training labels have the shape {train_labels.shape}, but must be ({len(train)},).")
    classes, label = np.unique(train_labels, return_inverse=True)
    votes = label[knn_neighbours(train, test, k=k, block_bytes=block_bytes)]  # (m, k)
    cell = np.arange(len(test))[:, None] * len(classes) + votes
    counts = np.bincount(cell.reshape(-1), minlength=len(test) * len(classes)).reshape(len(test), len(classes))
    predicted: np.ndarray = classes[counts.argmax(axis=1)]
    return predicted


def knn_accuracy(
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    *,
    k: int = 5,
    block_bytes: int = BLOCK_BYTES,
) -> float:
    """Return the share of ``test`` rows that their ``k`` nearest training rows label rightly.

    >>> import numpy as np
    >>> train, test = np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]])
    >>> knn_accuracy(train, np.array([3, 3, 7]), test, np.array([7, 7]), k=1)
    0.5
    """
    check_labelled(train, y, test, y_test)
    return float(np.mean(knn_predict(train, y, test, k=k, block_bytes=block_bytes) == y_test))


def _candidates(
    train: np.ndarray, test: np.ndarray, mean: np.ndarray, count: int, block_bytes: int
) -> tuple[npt.NDArray[np.int64], np.ndarray]:
    """Return the rows (m, count) with the smallest ‖b‖² − 2ab, and the largest of those values for each a: (m,)."""
    entries = max(1, block_bytes // _FLOAT64)
    width = train.shape[1]
    # Long blocks of training rows make selection cheap; the product is fast in any shape.
    train_rows = max(1, min(len(train), 4 * math.isqrt(entries), entries // width))
    test_rows = max(1, min(len(test), entries // train_rows, entries // width))
    buffer = torch.empty(test_rows * train_rows, dtype=torch.float64)
    values = torch.full((len(test), count), torch.inf, dtype=torch.float64)
    rows = torch.zeros((len(test), count), dtype=torch.int64)
    for first in range(0, len(train), train_rows):
        b = torch.from_numpy(_centred(train[first : first + train_rows], mean))
        square = b.square().sum(dim=1)
        for start in range(0, len(test), test_rows):
            here = slice(start, start + test_rows)
            a = torch.from_numpy(_centred(test[here], mean))
            block = buffer[: len(a) * len(b)].view(len(a), len(b))
            torch.addmm(square, a, b.T, alpha=-2, out=block)
            near = block.topk(min(count, len(b)), dim=1, largest=False, sorted=False)
            both = torch.cat([values[here], near.values], dim=1)
            kept = both.topk(count, dim=1, largest=False, sorted=False)
            values[here] = kept.values
            rows[here] = torch.cat([rows[here], near.indices + first], dim=1).gather(1, kept.indices)
    return rows.numpy(), values.amax(dim=1).numpy()


def _rank(
    train: np.ndarray, test: np.ndarray, candidates: npt.NDArray[np.int64], k: int, block_bytes: int
) -> tuple[npt.NDArray[np.int64], np.ndarray]:
    """Return the ``k`` nearest candidates by (distance, row), and the squared distance of the last: (m, k), (m,)."""
    neighbours = np.empty((len(test), k), dtype=np.int64)
    farthest = np.empty(len(test))
    step = max(1, block_bytes // (_FLOAT64 * candidates.shape[1] * train.shape[1]))
    for start in range(0, len(test), step):
        here = slice(start, start + step)
        rows = np.sort(candidates[here], axis=1)
        distance = _squared_distances(train[rows], test[here, None])
        order = np.argsort(distance, axis=1, kind="stable")[:, :k]
        neighbours[here] = np.take_along_axis(rows, order, axis=1)
        farthest[here] = np.take_along_axis(distance, order[:, -1:], axis=1)[:, 0]
    return neighbours, farthest


def _nearest_directly(train: np.ndarray, row: np.ndarray, k: int, block_bytes: int) -> npt.NDArray[np.int64]:
    step = max(1, block_bytes // (_FLOAT64 * train.shape[1]))
    distance = np.concatenate(
        [_squared_distances(train[start : start + step], row) for start in range(0, len(train), step)]
    )
    near = np.flatnonzero(distance <= np.partition(distance, k - 1)[k - 1])
    return near[np.argsort(distance[near], kind="stable")[:k]]


def _squared_norms(x: np.ndarray, mean: np.ndarray, block_bytes: int) -> np.ndarray:
    step = max(1, block_bytes // (_FLOAT64 * x.shape[1]))
    return np.concatenate(
        [np.square(_centred(x[start : start + step], mean)).sum(axis=1) for start in range(0, len(x), step)]
    )


def _centred(x: np.ndarray, mean: np.ndarray) -> npt.NDArray[np.float64]:
    centred: npt.NDArray[np.float64] = np.subtract(x, mean, dtype=np.float64)
    return centred


def _squared_distances(a: np.ndarray, b: np.ndarray) -> npt.NDArray[np.float64]:
    distance: npt.NDArray[np.float64] = np.square(np.subtract(a, b, dtype=np.float64)).sum(axis=-1)
    return distance
