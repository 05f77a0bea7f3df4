"""How well an embedding predicts a measurement: R² of neighbours, and of ridge regression on all or few rows."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pinoise.data.dataset import Array
from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_embeddings
from pinoise.evaluation.knn import NEIGHBOURS, knn_neighbours
from pinoise.evaluation.logistic import DRAWS

KNOWN_VALUES = 50  # rows whose values the few-label probe reveals

# From next to no shrinkage to hardly anything but the mean; leave-one-out errors choose, which cost next to nothing.
_STRENGTHS = np.logspace(-3, 5, 17)


def r_squared(y: Array, predicted: Array) -> float:
    """Return the share of the variance of ``y`` that predictions explain: 1 − Σ (y − ŷ)² / Σ (y − ȳ)².

    It is 0 for the mean of ``y``, and below 0 for what is worse than that.

    >>> y = np.array([0.0, 1.0, 2.0])
    >>> r_squared(y, y), r_squared(y, np.ones(3)), r_squared(y, y[::-1])
    (1.0, 0.0, -3.0)
    """
    total = np.square(y - y.mean()).sum()
    if total == 0:
        raise UserError(f"every test row has the value {y[0]:g}: R² needs at least two values.")
    return float(1 - np.square(y - predicted).sum() / total)


def knn_r_squared(train: Array, y: Array, test: Array, y_test: Array, *, k: int = NEIGHBOURS) -> float:
    """Return R² of the mean value of the ``k`` nearest training rows.

    >>> x = np.array([[0.0], [1.0], [9.0]])
    >>> knn_r_squared(x, np.array([2.0, 4.0, 8.0]), np.array([[0.4], [9.0]]), np.array([2.0, 8.0]), k=1)
    1.0
    """
    check_embeddings(train, test, y, y_test, what="values")
    return r_squared(y_test, y[knn_neighbours(train, test, k=k)].mean(axis=1))


def ridge_r_squared(train: Array, y: Array, test: Array, y_test: Array) -> float:
    """Return R² of ridge regression on the embedding as it is, whose strength leave-one-out errors choose.

    >>> x = np.arange(12.0)[:, None]
    >>> round(ridge_r_squared(x, 3 * x[:, 0], x, 3 * x[:, 0]), 3)
    1.0
    """
    from sklearn.linear_model import RidgeCV  # which imports much that the doors do not need

    check_embeddings(train, test, y, y_test, what="values")
    with threadpool_limits(1, user_api="blas"):
        model = RidgeCV(alphas=_STRENGTHS).fit(np.asarray(train, dtype=np.float64), y)
        return r_squared(y_test, model.predict(np.asarray(test, dtype=np.float64)))


def few_value_scores(
    train: Array, y: Array, test: Array, y_test: Array, *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, ...]:
    """Return R² of ridge regression on ``KNOWN_VALUES`` rows drawn at random, for each of several draws of them.

    The rows depend on the number of rows and the seed alone, so every embedding is probed on the same ones.

    >>> x = np.arange(60.0)[:, None]
    >>> [round(found, 2) for found in few_value_scores(x, -x[:, 0], x, -x[:, 0], draws=2)]
    [1.0, 1.0]
    """
    drawn = [np.random.default_rng([seed, draw]).permutation(len(train))[:KNOWN_VALUES] for draw in range(draws)]
    return tuple(ridge_r_squared(train[rows], y[rows], test, y_test) for rows in drawn)
