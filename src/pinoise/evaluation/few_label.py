"""The few-label probe: how far an embedding carries when only some rows of each class are labelled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError
from pinoise.evaluation.embedding import check_labelled
from pinoise.evaluation.logistic import fit_logistic


def few_label_rows(y: np.ndarray, *, labels_per_class: int = 10, draw: int = 0, seed: int = 0) -> npt.NDArray[np.int64]:
    """Return the rows whose labels one draw reveals: ``labels_per_class`` of each class, all of a smaller class.

    They depend on nothing but the arguments, so that every embedding is probed on the same rows.

    >>> import numpy as np
    >>> rows = few_label_rows(np.array([0, 0, 0, 0, 1]), labels_per_class=2)
    >>> len(rows), 4 in rows
    (3, True)
    """
    random = np.random.default_rng([seed, draw])
    chosen = [random.permutation(np.flatnonzero(y == label))[:labels_per_class] for label in np.unique(y)]
    return np.concatenate(chosen)


def few_label_accuracies(
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    *,
    labels_per_class: int = 10,
    draws: int = 10,
    seed: int = 0,
) -> tuple[float, ...]:
    """Return the test accuracy with few labels under each of several draws of them.

    Each draw fits :func:`~pinoise.evaluation.fit_logistic` on the rows of :func:`few_label_rows`.

    >>> import numpy as np
    >>> x, y = np.repeat(np.eye(3), 20, axis=0), np.repeat([0, 1, 2], 20)
    >>> few_label_accuracies(x, y, x, y, labels_per_class=2, draws=3)
    (1.0, 1.0, 1.0)
    """
    check_labelled(train, y, test, y_test)
    if labels_per_class < 1 or draws < 1:
        raise UserError(f"labels_per_class is {labels_per_class} and draws is {draws}, but both must be at least 1.")
    accuracies = []
    for draw in range(draws):
        rows = few_label_rows(y, labels_per_class=labels_per_class, draw=draw, seed=seed)
        accuracies.append(float(np.mean(fit_logistic(train[rows], y[rows]).predict(test) == y_test)))
    return tuple(accuracies)
