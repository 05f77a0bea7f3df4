"""Scores of a measurement, compared with scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.neighbors import KNeighborsRegressor

from pinoise.errors import UserError
from pinoise.evaluation import Scores, evaluate, few_value_scores, knn_r_squared, ridge_r_squared
from pinoise.evaluation.ridge import r_squared


def parts() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x, y = load_diabetes(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return x[:300], y[:300], x[300:], y[300:]


def test_neighbours_and_r_squared_agree_with_scikit_learn() -> None:
    x, y, test, y_test = parts()
    predicted = KNeighborsRegressor(5).fit(x, y).predict(test)
    assert r_squared(y_test, predicted) == pytest.approx(r2_score(y_test, predicted))
    assert knn_r_squared(x, y, test, y_test) == pytest.approx(r2_score(y_test, predicted), abs=1e-9)


def test_the_strength_of_ridge_is_that_of_leave_one_out() -> None:
    x, y, test, y_test = parts()
    x, y = x[:40], y[:40]
    grid = {"alpha": np.logspace(-3, 5, 17)}
    search = GridSearchCV(Ridge(), grid, cv=LeaveOneOut(), scoring="neg_mean_squared_error").fit(x, y)
    assert ridge_r_squared(x, y, test, y_test) == pytest.approx(search.best_estimator_.score(test, y_test), abs=1e-6)


def test_few_values_are_the_same_rows_for_every_embedding_and_others_for_every_draw() -> None:
    x, y, test, y_test = parts()
    found = few_value_scores(x, y, test, y_test, draws=4)
    assert len(set(found)) == 4
    assert found == pytest.approx(few_value_scores(x[:, ::-1], y, test[:, ::-1], y_test, draws=4))
    assert found[:2] == few_value_scores(x, y, test, y_test, draws=2)
    assert found != few_value_scores(x, y, test, y_test, draws=4, seed=1)
    assert np.mean(found) < ridge_r_squared(x, y, test, y_test)


def test_real_numbers_are_scored_as_a_measurement_and_whole_ones_as_classes() -> None:
    some = parts()
    assert evaluate(*some, seed=2) == Scores(
        knn=knn_r_squared(*some), lr=ridge_r_squared(*some), few_draws=few_value_scores(*some, seed=2)
    )
    x, y, test, y_test = some
    classes = evaluate(x, (y > 150).astype(np.int64), test, (y_test > 150).astype(np.int64), scores=["knn", "sr"])
    assert classes.sr is not None


def test_a_constant_target_has_no_score() -> None:
    x, y, test, _ = parts()
    with pytest.raises(UserError, match="every test row has the value 3: R² needs at least two values"):
        knn_r_squared(x, y, test, np.full(len(test), 3.0))
