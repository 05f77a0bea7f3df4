"""Converged logistic regression, which a user would fit on an embedding: on all labels, and on a few of each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pinoise.data.dataset import Array, Labels
from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_labelled

DRAWS = 10  # of the few labels that a probe sees
LABELS_PER_CLASS = 10  # labels of each class that the few-label probe reveals
_MOST_ITERATIONS = 20_000  # which next to no data needs
UNKNOWN = -1  # the label of a row without one, as in ``sklearn.semi_supervised``

Predict = Callable[[Labels, int], Labels]
"""From labels of the training rows, ``UNKNOWN`` where there is none, and a seed to labels of the test rows."""

Classifier = Callable[[Array, Array], Predict]
"""From training and test rows to what predicts under any labels, so that work without labels is done once."""


def fit_logistic(train: Array, y: Array, *, standardise: bool = False) -> Any:
    """Return scikit-learn's L2 logistic regression, fitted on ``train`` as it is, in float32 and until it converges.

    Args:
        train: the embedding.
        y: its labels.
        standardise: whether to divide columns by their standard deviation first; a constant one is only centred.

    >>> import numpy as np
    >>> fit_logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])).predict([[-5.0], [9.0]])
    array([0, 1])
    """
    # These import much that the doors do not need.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    steps = [FunctionTransformer(np.float32), LogisticRegression(max_iter=_MOST_ITERATIONS)]
    # One iteration is too small to share among threads: on busy cores, waiting for each other costs more than it saves.
    with threadpool_limits(1, user_api="blas"):
        return make_pipeline(*([StandardScaler()] if standardise else []), *steps).fit(train, y)


def logistic_regression(train: Array, y: Array, test: Array, y_test: Array) -> float:
    """Return the test accuracy of converged logistic regression on the embedding as it is.

    >>> import numpy as np
    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> logistic_regression(x, y, np.array([[-5.0], [9.0]]), np.array([0, 0]))
    0.5
    """
    check_labelled(train, y, test, y_test)
    return float(np.mean(fit_logistic(train, y).predict(test) == y_test))


def on_labelled(fit: Callable[[Array, Array, int], Any]) -> Classifier:
    """Return what fits an estimator on the labelled rows alone; ``fit`` takes these, their labels and a seed.

    >>> predict = on_labelled(lambda x, y, seed: fit_logistic(x, y))(np.array([[0.0], [2.0], [5.0]]), np.array([[2.0]]))
    >>> predict(np.array([4, UNKNOWN, 7]), 0)
    array([4])
    """

    def prepare(train: Array, test: Array) -> Predict:
        def predict(y: Labels, seed: int) -> Labels:
            known = y != UNKNOWN
            return np.asarray(fit(train[known], y[known], seed).predict(test))

        return predict

    return prepare


plain = on_labelled(lambda x, y, _: fit_logistic(x, y))
"""Logistic regression on rows as they are."""

standardised = on_labelled(lambda x, y, _: fit_logistic(x, y, standardise=True))
"""Logistic regression on rows whose columns are divided by their standard deviation."""


def few_label_accuracies(
    train: Array,
    y: Array,
    test: Array,
    y_test: Array,
    *,
    classifier: Classifier = plain,
    labels_per_class: int = LABELS_PER_CLASS,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[float, ...]:
    """Return the test accuracy of a classifier with few labels under each of several draws of them.

    A draw reveals the labels of :func:`few_label_rows`. The default fits :func:`fit_logistic` on these rows.

    >>> import numpy as np
    >>> x, y = np.repeat(np.eye(3), 20, axis=0), np.repeat([0, 1, 2], 20)
    >>> few_label_accuracies(x, y, x, y, labels_per_class=2, draws=3)
    (1.0, 1.0, 1.0)
    """
    check_labelled(train, y, test, y_test)
    if labels_per_class < 1 or draws < 1:
        raise UserError(f"labels_per_class is {labels_per_class} and draws is {draws}, but both must be at least 1.")
    classes, numbers = np.unique(y, return_inverse=True)
    predict = classifier(train, test)
    accuracies = []
    for draw in range(draws):
        rows = few_label_rows(y, labels_per_class=labels_per_class, draw=draw, seed=seed)
        revealed = np.full(len(y), UNKNOWN, dtype=np.int64)
        revealed[rows] = numbers[rows]
        accuracies.append(float(np.mean(classes[predict(revealed, seed)] == y_test)))
    return tuple(accuracies)


def few_label_rows(y: Array, *, labels_per_class: int, draw: int, seed: int) -> Labels:
    """Return the rows whose labels one draw reveals: ``labels_per_class`` of each class, all of a smaller class.

    They depend on the arguments alone, so every embedding is probed on the same rows.

    >>> import numpy as np
    >>> rows = few_label_rows(np.array([0, 0, 0, 0, 1]), labels_per_class=2, draw=0, seed=0)
    >>> len(rows), 4 in rows
    (3, True)
    """
    random = np.random.default_rng([seed, draw])
    chosen = [random.permutation(np.flatnonzero(y == label))[:labels_per_class] for label in np.unique(y)]
    return np.concatenate(chosen)
