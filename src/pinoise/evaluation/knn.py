"""k nearest neighbours by Euclidean distance, and how far two embeddings agree about them, which needs no labels.

Products propose neighbours, and an exact ranking settles ties.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch

from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings, check_labelled
from pinoise.networks.mlp import linear

NEIGHBOURS = 5  # k in the paper's protocol
AGREEING = 10  # neighbours of a row that are compared between two embeddings

_SPARE = 8  # candidates beyond k, so that rounding and a few equal distances do not force a second search
_HELD_VALUES = 1 << 23  # distances that are held at a time, 32 MB
_SAFE = 2.0**40  # below it, and above its inverse, squares and sums of many are in the range of single precision
_RANKED_VALUES = 1 << 20  # values of candidates that are ranked at a time, 8 MB in float64


def knn_neighbours(train: np.ndarray, test: np.ndarray, *, k: int = NEIGHBOURS) -> npt.NDArray[np.int64]:
    """Return the rows of ``train`` nearest to each row of ``test``, nearest first: (m, k).

    Among equally distant rows the one that comes first in ``train`` wins. Distances ‖a‖² + ‖b‖² − 2ab are fast, but
    they cancel badly when the data lie far from the origin. So the training mean is subtracted first where it
    dominates, such distances only propose candidates, and the sum of squared differences ranks them. A bound on the
    rounding error shows where a neighbour may be missing. Single precision proposes first. Where that is too coarse,
    scikit-learn does in double precision, with more candidates each time. Memory does not grow with the rows.

    >>> import numpy as np
    >>> knn_neighbours(np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]]), k=2)
    array([[2, 1],
           [0, 1]])
    """
    check_embeddings(train, test)
    if not 1 <= k <= len(train):
        raise UserError(f"k is {k}, but must be from 1 to the number of training rows, which is {len(train)}.")
    kept = _first_copies(train, k)
    train = train if len(kept) == len(train) else train[kept]
    points, queries = _near_origin(train, test)
    norm = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
    neighbours = np.empty((len(test), k), dtype=np.int64)
    rows, count = np.arange(len(test)), min(k + _SPARE, len(train))
    largest = np.abs(points).max(initial=0)
    precision: type = np.float32 if 1 / _SAFE < largest < _SAFE else np.float64
    while len(rows):
        if precision == np.float32:
            candidates = _by_products(points, queries, count)
        else:
            from sklearn.neighbors import NearestNeighbors  # which imports much that the doors do not need

            search = NearestNeighbors(algorithm="brute").fit(points)
            candidates = search.kneighbors(queries[rows], count, return_distance=False)
        neighbours[rows], farthest, limit = _rank(train, test[rows], candidates, k)
        if count == len(train):
            break
        rows = rows[farthest >= limit - _error(norm[rows], np.sqrt(limit), train.shape[1], precision)]
        count, precision = count if precision == np.float32 else min(4 * count, len(train)), np.float64
    return kept[neighbours]


def _by_products(points: np.ndarray, queries: np.ndarray, count: int) -> npt.NDArray[np.int64]:
    """Return the rows of ``points`` that are nearest to each query in single precision, (m, count), in any order."""
    points = np.ascontiguousarray(points, dtype=np.float32)
    squares = torch.from_numpy(np.einsum("ij,ij->i", points, points, dtype=np.float64)).float()
    near, step = [], max(1, _HELD_VALUES // len(points))
    for start in range(0, len(queries), step):
        with np.errstate(over="ignore"):  # what becomes infinite is searched again
            some = torch.from_numpy(np.multiply(queries[start : start + step], -2, dtype=np.float64).astype(np.float32))
        scores = linear(some, torch.from_numpy(points), squares)  # ‖b‖² − 2ab: ‖a‖² does not change the order
        near.append(scores.topk(count, dim=1, largest=False, sorted=False).indices)
    return torch.cat(near).numpy()


def _error(norm: np.ndarray, distance: np.ndarray, features: int, precision: type) -> np.ndarray:
    """Return the largest error in comparing two squared distances to a query a, up to which no neighbour is missing.

    A row b with ‖b‖ > ‖a‖ + d is farther than d, so only shorter ones matter. A squared distance is off by at most
    u (2 n ‖a‖‖b‖ + 8 (‖a‖ + ‖b‖)²) for n features: by the sum of n products, and by the rounding of a, b, ‖b‖² and
    their sum.
    """
    longest = norm + distance
    off: np.ndarray = np.finfo(precision).eps / 2 * (2 * features * norm * longest + 8 * (norm + longest) ** 2)
    return 2 * off


def knn_predict(
    train: np.ndarray, train_labels: np.ndarray, test: np.ndarray, *, k: int = NEIGHBOURS
) -> npt.NDArray[np.generic]:
    """Return the most frequent label among the ``k`` neighbours of each row of ``test``, the smallest of several.

    >>> import numpy as np
    >>> knn_predict(np.array([[0.0], [1.0], [5.0]]), np.array([3, 3, 7]), np.array([[4.0], [0.1]]), k=1)
    array([7, 3])
    """
    if train_labels.shape != (len(train),):
        raise UserError(f"the training labels have the shape {train_labels.shape}, but must be ({len(train)},).")
    classes, label = np.unique(train_labels, return_inverse=True)
    votes = label[knn_neighbours(train, test, k=k)]  # (m, k)
    counts = np.stack([(votes == number).sum(axis=1) for number in range(len(classes))], axis=1)  # (m, classes)
    predicted: npt.NDArray[np.generic] = classes[counts.argmax(axis=1)]
    return predicted


def knn_accuracy(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, *, k: int = NEIGHBOURS
) -> float:
    """Return the share of ``test`` rows that their ``k`` nearest training rows label correctly.

    >>> import numpy as np
    >>> train, test = np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]])
    >>> knn_accuracy(train, np.array([3, 3, 7]), test, np.array([7, 7]), k=1)
    0.5
    """
    check_labelled(train, y, test, y_test)
    return float(np.mean(knn_predict(train, y, test, k=k) == y_test))


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


def _first_copies(train: np.ndarray, k: int) -> npt.NDArray[np.int64]:
    """Return the rows with fewer than ``k`` equal rows before them; the others are never among k neighbours.

    Texts without a known word, or a collapsed embedding, would otherwise give every search hundreds of equal distances.
    """
    copies: Counter[bytes] = Counter()
    kept = []
    for number, row in enumerate(train):
        content = blake2b(row.tobytes(), digest_size=16).digest()
        copies[content] += 1
        if copies[content] <= k:
            kept.append(number)
    return np.array(kept, dtype=np.int64)


def _near_origin(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both as they are, or less the mean of ``train`` in float64 where that mean dominates.

    Blocks become single precision as they are searched; copies in float64 would take twice the memory of float32 rows.
    """
    mean = train.mean(axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->", train, train, dtype=np.float64)
    if train.dtype == test.dtype == np.float32 and len(train) * (mean @ mean) < 0.9 * squares:
        return train, test
    return np.subtract(train, mean, dtype=np.float64), np.subtract(test, mean, dtype=np.float64)


def _rank(
    train: np.ndarray, test: np.ndarray, candidates: npt.NDArray[np.int64], k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the ``k`` nearest candidates by (distance, row), (m, k), and two squared distances, (m,) each.

    The first is that of the last neighbour, the second that of the farthest candidate.
    """
    candidates = np.sort(candidates, axis=1)
    distance = np.empty(candidates.shape)
    step = max(1, _RANKED_VALUES // (candidates.shape[1] * train.shape[1]))
    for start in range(0, len(test), step):
        here = slice(start, start + step)
        difference = np.subtract(train[candidates[here]], test[here, None], dtype=np.float64)
        distance[here] = np.square(difference).sum(axis=-1)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    farthest = np.take_along_axis(distance, order[:, -1:], axis=1)[:, 0]
    return np.take_along_axis(candidates, order, axis=1), farthest, distance.max(axis=1)
