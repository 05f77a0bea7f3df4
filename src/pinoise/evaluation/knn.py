"""k nearest neighbours by Euclidean distance: scikit-learn finds them, and an exact ranking settles ties."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings, check_labelled

NEIGHBOURS = 5  # k in the paper's protocol

_SPARE = 8  # candidates beyond k, so that rounding and a few equal distances do not force a second search
_RANKED_VALUES = 1 << 20  # values of candidates that are ranked at a time, 8 MB in float64


def knn_neighbours(train: np.ndarray, test: np.ndarray, *, k: int = NEIGHBOURS) -> npt.NDArray[np.int64]:
    """Return the rows of ``train`` nearest to each row of ``test``, nearest first: (m, k).

    Among equally distant rows the one that comes first in ``train`` wins. scikit-learn alone keeps an arbitrary one,
    and its distances ‖a‖² + ‖b‖² − 2ab cancel badly when the data lie far from the origin. So the training mean is
    subtracted first where it dominates, scikit-learn only proposes candidates, and the sum of squared differences ranks
    them. A bound on the rounding error shows where a neighbour may be missing; those rows are searched again with more
    candidates.

    >>> import numpy as np
    >>> knn_neighbours(np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]]), k=2)
    array([[2, 1],
           [0, 1]])
    """
    from sklearn.neighbors import NearestNeighbors  # which imports much that the doors do not need

    check_embeddings(train, test)
    if not 1 <= k <= len(train):
        raise UserError(f"k is {k}, but must be from 1 to the number of training rows, which is {len(train)}.")
    kept = _first_copies(train, k)
    train = train if len(kept) == len(train) else train[kept]
    points, queries = _near_origin(train, test)
    search = NearestNeighbors(algorithm="brute").fit(points)
    norm = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
    rounding = 4 * (train.shape[1] + 8) * np.finfo(np.float64).eps
    neighbours = np.empty((len(test), k), dtype=np.int64)
    rows, count = np.arange(len(test)), min(k + _SPARE, len(train))
    while len(rows):
        candidates = search.kneighbors(queries[rows], count, return_distance=False)
        neighbours[rows], farthest, limit = _rank(train, test[rows], candidates, k)
        if count == len(train):
            break
        # Up to rounding, no other row is nearer than the farthest candidate. A row b with ‖b‖ > ‖a‖ + d is farther
        # than d, so the error matters only for shorter ones.
        error = rounding * (2 * norm[rows] + np.sqrt(limit)) ** 2
        rows = rows[farthest >= limit - error]
        count = min(4 * count, len(train))
    return kept[neighbours]


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

    scikit-learn computes in float64 either way; the copies would take twice the memory of float32 rows.
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
