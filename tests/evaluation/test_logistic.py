from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from pinoise.evaluation import fit_logistic, logistic_regression


def slow_probabilities(train: np.ndarray, y: np.ndarray, test: np.ndarray, *, C: float) -> np.ndarray:
    """The convex objective Σ cross-entropy + ‖W‖²/2C on standardised features, minimised in float64."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    a, b = (train - mean) / std, (test - mean) / std
    classes = int(y.max()) + 1
    target = np.eye(classes)[y]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w = flat.reshape(a.shape[1] + 1, classes)
        logits = a @ w[:-1] + w[-1]
        value = -(target * log_softmax(logits, axis=1)).sum() + (w[:-1] ** 2).sum() / (2 * C)
        error = softmax(logits, axis=1) - target
        return float(value), np.vstack([a.T @ error + w[:-1] / C, error.sum(axis=0)]).reshape(-1)

    start = np.zeros((a.shape[1] + 1) * classes)
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-8, "ftol": 1e-15}
    )
    w = found.x.reshape(-1, classes)
    result: np.ndarray = softmax(b @ w[:-1] + w[-1], axis=1)
    return result


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_probabilities_are_those_of_the_true_minimum(C: float) -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 300)
    x = random.standard_normal((4, 10))[y] + random.standard_normal((300, 10))
    x = x * np.logspace(-3, 3, 10) + 5  # scales that only standardisation makes equal
    test = x[200:]
    found = fit_logistic(x[:200], y[:200], C=C).predict_proba(test)
    np.testing.assert_allclose(found, slow_probabilities(x[:200], y[:200], test, C=C), atol=1e-2)


def test_digits_are_recognised() -> None:
    x, y = load_digits(return_X_y=True)
    assert logistic_regression(x[:1200], y[:1200], x[1200:], y[1200:]) > 0.9


def test_constant_columns_change_nothing() -> None:
    x, y = load_digits(return_X_y=True)
    x = x[:, x.std(axis=0) > 0].astype(np.float32)
    wide = np.column_stack([x, np.zeros(len(x)), np.full(len(x), 0.1)]).astype(np.float32)
    narrow = fit_logistic(x[:300], y[:300]).predict_proba(x[300:])
    np.testing.assert_allclose(fit_logistic(wide[:300], y[:300]).predict_proba(wide[300:]), narrow, atol=1e-2)


def test_too_few_iterations_warn_in_one_sentence() -> None:
    x, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning) as caught:
        logistic_regression(x, y, x, y, max_iter=3)
    assert len(caught) == 1
    assert "stopped after 3 iterations" in str(caught[0].message)
    assert "raise max_iter (now 3)" in str(caught[0].message)


def test_a_converged_fit_is_silent() -> None:
    x, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logistic_regression(x, y, x, y)


def test_a_label_that_train_lacks_counts_as_wrong() -> None:
    x = np.array([[0.0], [0.1], [5.0], [5.1]])
    assert logistic_regression(x, np.array([0, 0, 1, 1]), x, np.array([0, 3, 1, 1])) == 0.75
