"""k nearest neighbours by Euclidean distance, and how far two embeddings agree about them, which needs no labels."""

from __future__ import annotations

import numpy as np
import torch

from pinoise.data.dataset import Array, Labels
from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings, check_labelled

NEIGHBOURS = 5  # k in the paper's protocol
AGREEING = 10  # neighbours of a row that are compared between two embeddings

HELD_VALUES = 1 << 22  # 32 MB

_SPARE = 8  # rows beyond k that products propose, as they tell near distances apart less well than differences do


def knn_neighbours(train: Array, test: Array, *, k: int = NEIGHBOURS, held: int = HELD_VALUES) -> Labels:
    """Return the rows of ``train`` nearest to each row of ``test``, nearest first: (m, k).

    Distances ‖b‖² − 2ab, which products give, propose a few more than ``k`` rows; the sum of squared differences ranks
    them, and of equally distant ones the first comes first. At most ``held`` values are in memory at a time, beside
    both embeddings.

    >>> import numpy as np
    >>> knn_neighbours(np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]]), k=2)
    array([[2, 1],
           [0, 1]])
    """
    check_embeddings(train, test)
    if not 1 <= k <= len(train):
        raise UserError(f"k is {k}, but must be from 1 to the number of training rows, which is {len(train)}.")
    mean = train.mean(axis=0, dtype=np.float64)  # products cancel badly far from the origin
    points = torch.from_numpy(np.subtract(train, mean, dtype=np.float64))
    squares = points.square().sum(dim=1)
    proposed = min(k + _SPARE, len(train))
    neighbours = np.empty((len(test), k), dtype=np.int64)
    step = max(1, held // max(len(train), proposed * train.shape[1]))
    for start in range(0, len(test), step):
        some = torch.from_numpy(np.subtract(test[start : start + step], mean, dtype=np.float64))
        distance = torch.addmm(squares, some, points.T, alpha=-2)  # without ‖a‖², which does not change the order
        near = distance.topk(proposed, dim=1, largest=False).indices.sort(dim=1).values
        exact = (points[near] - some[:, None]).square().sum(dim=2)
        order = exact.argsort(dim=1, stable=True)[:, :k]
        neighbours[start : start + step] = near.gather(1, order).numpy()
    return neighbours


def knn_predict(train: Array, train_labels: Array, test: Array, *, k: int = NEIGHBOURS) -> Array:
    """Return the most frequent label among the ``k`` neighbours of each row of ``test``, the smallest of several.

    >>> import numpy as np
    >>> knn_predict(np.array([[0.0], [1.0], [5.0]]), np.array([3, 3, 7]), np.array([[4.0], [0.1]]), k=1)
    array([7, 3])
    """
    classes, label = np.unique(train_labels, return_inverse=True)
    votes = label[knn_neighbours(train, test, k=k)]  # (m, k)
    counts = np.stack([(votes == number).sum(axis=1) for number in range(len(classes))], axis=1)  # (m, classes)
    return np.asarray(classes[counts.argmax(axis=1)])


def knn_accuracy(train: Array, y: Array, test: Array, y_test: Array, *, k: int = NEIGHBOURS) -> float:
    """Return the share of ``test`` rows that their ``k`` nearest training rows label correctly.

    >>> import numpy as np
    >>> train, test = np.array([[0.0], [1.0], [5.0]]), np.array([[4.0], [0.1]])
    >>> knn_accuracy(train, np.array([3, 3, 7]), test, np.array([7, 7]), k=1)
    0.5
    """
    check_labelled(train, y, test, y_test)
    return float(np.mean(knn_predict(train, y, test, k=k) == y_test))


def neighbour_agreement(a: Array, b: Array, *, k: int = AGREEING) -> float:
    """Return the mean share of a row's ``k`` nearest other rows that two embeddings have in common.

    It is 1 for the same neighbourhoods and k / (n − 1) for unrelated ones.

    >>> x = np.array([[0.0], [1.0], [5.0], [6.5]])
    >>> neighbour_agreement(x, 3 * x, k=1), neighbour_agreement(x, np.array([[0.0], [9.0], [0.1], [9.1]]), k=1)
    (1.0, 0.0)
    """
    ours, theirs = _others(a, k), _others(b, k)
    common = (ours[:, :, None] == theirs[:, None, :]).any(axis=2)  # (n, k)
    return float(common.mean())


def _others(x: Array, k: int) -> Labels:
    """Return the ``k`` nearest other rows of each row, (n, k)."""
    near = knn_neighbours(x, x, k=k + 1)
    itself = near == np.arange(len(x))[:, None]
    itself[~itself.any(axis=1), -1] = True  # a row with many copies may not be among its own neighbours
    return np.asarray(near[~itself].reshape(len(x), k))
