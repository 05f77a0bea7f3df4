from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pinoise.errors import UserError
from pinoise.evaluation.logistic import (
    Classifier,
    few_label_accuracies,
    few_label_rows,
    fit_logistic,
    logistic_regression,
    plain,
    standardised,
)


def slow_probabilities(train: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The convex objective Σ cross-entropy + ‖W‖²/2 on standardised features, minimised in float64."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    a, b = (train - mean) / std, (test - mean) / std
    classes = int(y.max()) + 1
    target = np.eye(classes)[y]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w = flat.reshape(a.shape[1] + 1, classes)
        logits = a @ w[:-1] + w[-1]
        value = -(target * log_softmax(logits, axis=1)).sum() + (w[:-1] ** 2).sum() / 2
        error = softmax(logits, axis=1) - target
        return float(value), np.vstack([a.T @ error + w[:-1], error.sum(axis=0)]).reshape(-1)

    start = np.zeros((a.shape[1] + 1) * classes)
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-8, "ftol": 1e-15}
    )
    w = found.x.reshape(-1, classes)
    result: np.ndarray = softmax(b @ w[:-1] + w[-1], axis=1)
    return result


def test_probabilities_are_those_of_the_true_minimum() -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 300)
    x = random.standard_normal((4, 10))[y] + random.standard_normal((300, 10))
    x = x * np.logspace(-3, 3, 10) + 5  # scales that only standardisation makes equal
    test = x[200:]
    found = fit_logistic(x[:200], y[:200], standardise=True).predict_proba(test)
    np.testing.assert_allclose(found, slow_probabilities(x[:200], y[:200], test), atol=1e-2)


def test_a_converged_fit_is_silent() -> None:
    x, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logistic_regression(x, y, x, y)


def test_a_label_that_train_lacks_counts_as_wrong() -> None:
    x = np.array([[0.0], [0.1], [5.0], [5.1]])
    assert logistic_regression(x, np.array([0, 0, 1, 1]), x, np.array([0, 3, 1, 1])) == 0.75


def test_each_class_gives_the_asked_rows_or_all_it_has() -> None:
    y = np.repeat([5, 0, 2], [30, 3, 12])
    rows = few_label_rows(y, labels_per_class=10, draw=0, seed=0)
    assert len(np.unique(rows)) == len(rows)
    labels, counts = np.unique(y[rows], return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {0: 3, 2: 10, 5: 10}


def test_rows_follow_the_seed_and_the_draw() -> None:
    y = np.arange(1000) % 5
    first = few_label_rows(y, labels_per_class=10, draw=1, seed=2)
    np.testing.assert_array_equal(first, few_label_rows(y, labels_per_class=10, draw=1, seed=2))
    assert set(first) != set(few_label_rows(y, labels_per_class=10, draw=2, seed=2))
    assert set(first) != set(few_label_rows(y, labels_per_class=10, draw=1, seed=3))


@pytest.mark.parametrize(
    ("classifier", "steps"), [(plain, ()), (standardised, (StandardScaler(),))], ids=["plain", "standardised"]
)
def test_every_draw_is_what_scikit_learn_scores_on_its_rows(
    classifier: Classifier, steps: tuple[StandardScaler, ...]
) -> None:
    x, y = load_digits(return_X_y=True)
    x /= 16
    accuracies = []
    for draw in range(3):
        rows = few_label_rows(y[:1200], labels_per_class=10, draw=draw, seed=1)
        model = make_pipeline(*steps, LogisticRegression(max_iter=2000)).fit(x[rows], y[rows])
        accuracies.append(model.score(x[1200:], y[1200:]))
    found = few_label_accuracies(x[:1200], y[:1200], x[1200:], y[1200:], classifier=classifier, draws=3, seed=1)
    assert found == pytest.approx(accuracies, abs=0.005)
    assert len(set(found)) == 3
    assert 0.7 < min(found) <= max(found) < 0.95


@pytest.mark.parametrize(("labels", "draws"), [(0, 1), (1, 0)])
def test_nothing_to_draw_is_an_error(labels: int, draws: int) -> None:
    with pytest.raises(UserError, match=f"labels_per_class is {labels} and draws is {draws}"):
        few_label_accuracies(np.eye(2), np.arange(2), np.eye(2), np.arange(2), labels_per_class=labels, draws=draws)
