"""k nearest neighbours by Euclidean distance, and how far two embeddings agree about them, which needs no labels.

Products propose neighbours, and an exact ranking settles ties.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch

from pinoise.data.dataset import RowNumbers
from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings, check_labelled

NEIGHBOURS = 5  # k in the paper's protocol
AGREEING = 10  # neighbours of a row that are compared between two embeddings

HELD_VALUES = 1 << 22  # 32 MB


def knn_neighbours(
    train: np.ndarray, test: np.ndarray, *, k: int = NEIGHBOURS, held: int = HELD_VALUES
) -> npt.NDArray[np.int64]:
    """Return the rows of ``train`` nearest to each row of ``test``, nearest first: (m, k).

    Among equally distant rows the one that comes first in ``train`` wins. Distances ‖b‖² − 2ab, which products give,
    propose all rows that may be among the ``k`` by a bound on their rounding; the sum of squared differences ranks
    them. At most ``held`` values are in memory at a time, beside both embeddings.

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
    mean = train.mean(axis=0, dtype=np.float64)  # products cancel badly far from the origin
    points = torch.from_numpy(np.subtract(train, mean, dtype=np.float64))
    squares = points.square().sum(dim=1)
    neighbours, step = np.empty((len(test), k), dtype=np.int64), max(1, held // len(train))
    for start in range(0, len(test), step):
        some = test[start : start + step]
        queries = np.subtract(some, mean, dtype=np.float64)
        # ‖a‖² does not change the order.
        distance = torch.addmm(squares, torch.from_numpy(queries), points.T, alpha=-2)
        limit = distance.topk(k, dim=1, largest=False).values[:, -1].numpy()
        limit += _error(np.sqrt(np.einsum("ij,ij->i", queries, queries)), limit, train.shape[1])
        row, candidate = (distance <= torch.from_numpy(limit)[:, None]).nonzero().numpy().T
        neighbours[start : start + step] = _ranked(train, some, row, candidate, k=k, held=held)
    return kept[neighbours]


def _error(norm: np.ndarray, distance: np.ndarray, features: int) -> np.ndarray:
    """Return by how much a row that is among the neighbours of a query a may seem too far away, (m,).

    A row b with ‖b‖ > ‖a‖ + d is farther than d, so only shorter ones matter. A squared distance is off by at most
    u (2 n ‖a‖‖b‖ + 8 (‖a‖ + ‖b‖)²) for n features: by the sum of n products, and by the rounding of a, b, ‖b‖² and
    their sum. Two distances are compared.
    """
    longest = norm + np.sqrt(np.maximum(distance + norm**2, 0))
    off: np.ndarray = np.finfo(np.float64).eps * (2 * features * norm * longest + 8 * (norm + longest) ** 2)
    return off


def _ranked(
    train: np.ndarray, test: np.ndarray, row: RowNumbers, candidate: RowNumbers, *, k: int, held: int
) -> RowNumbers:
    """Return the ``k`` nearest candidates of every row of ``test`` by (distance, row), (m, k); ``row`` is in order."""
    distance, step = np.empty(len(row)), max(1, held // train.shape[1])
    for start in range(0, len(row), step):
        here = slice(start, start + step)
        difference = np.subtract(train[candidate[here]], test[row[here]], dtype=np.float64)
        distance[here] = np.square(difference).sum(axis=1)
    order, first = np.lexsort((candidate, distance, row)), np.searchsorted(row, np.arange(len(test)))
    nearest: RowNumbers = candidate[order[first[:, None] + np.arange(k)]]
    return nearest


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
