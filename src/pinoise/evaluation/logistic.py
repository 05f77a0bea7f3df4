"""Converged logistic regression: what a user would fit on an embedding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pinoise.evaluation.embedding import check_labelled


def fit_logistic(train: np.ndarray, y: np.ndarray, *, C: float = 1.0, max_iter: int = 2000) -> Any:
    """Return scikit-learn's L2 logistic regression, fitted on ``train`` standardised by its own statistics.

    A constant column is only centred. The fit runs in float32 to scikit-learn's default tolerance; if it stops before
    that, one sentence warns.

    >>> import numpy as np
    >>> fit_logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])).predict([[-5.0], [9.0]])
    array([0, 1])
    """
    model: Pipeline = make_pipeline(
        StandardScaler(), FunctionTransformer(_to_float32), LogisticRegression(C=C, max_iter=max_iter)
    )
    # One iteration is too small to share among threads: on busy cores, waiting for each other costs more than it saves.
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(train, y)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn(warning.message, stacklevel=2)
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        warnings.warn(
            f"logistic regression stopped after {int(model[-1].n_iter_.max())} iterations before it converged, "
            f"so its accuracy may still move: raise max_iter (now {max_iter}) or lower C (now {C:g}).",
            ConvergenceWarning,
            stacklevel=2,
        )
    return model


def logistic_regression(
    train: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    y_test: np.ndarray,
    *,
    C: float = 1.0,
    max_iter: int = 2000,
) -> float:
    """Return the test accuracy of converged logistic regression on the standardised embedding.

    >>> import numpy as np
    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> logistic_regression(x, y, np.array([[-5.0], [9.0]]), np.array([0, 0]))
    0.5
    """
    check_labelled(train, y, test, y_test)
    return float(np.mean(fit_logistic(train, y, C=C, max_iter=max_iter).predict(test) == y_test))


def _to_float32(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32, copy=False)
