from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from pinoise.choices import SCORES
from pinoise.errors import UserError
from pinoise.evaluation import (
    Scores,
    evaluate,
    few_label_accuracies,
    knn_accuracy,
    logistic_regression,
    softmax_regression,
)
from pinoise.evaluation.logistic import standardised


def test_every_score_is_that_of_its_own_function() -> None:
    x, y = load_digits(return_X_y=True)
    parts = (x[:600] / 16, y[:600], x[600:] / 16, y[600:])
    assert evaluate(*parts, seed=3) == Scores(
        knn=knn_accuracy(*parts, k=5),
        sr=softmax_regression(*parts, seed=3),
        lr=logistic_regression(*parts),
        few_draws=few_label_accuracies(*parts, seed=3),
        few_standardised_draws=few_label_accuracies(*parts, seed=3, classifier=standardised),
    )


@pytest.mark.parametrize("asked", [("knn",), ("few", "sr"), ("lr", "few_standardised")])
def test_only_the_scores_asked_for_are_computed(asked: tuple[str, ...]) -> None:
    x, y = load_digits(return_X_y=True)
    parts = (x[:300] / 16, y[:300], x[300:600] / 16, y[300:600])
    some, every = evaluate(*parts, scores=asked), evaluate(*parts)
    for name in SCORES:
        assert getattr(some, name) == (getattr(every, name) if name in asked else None)


def test_scores_are_frozen_and_go_through_json() -> None:
    draws = (0.5, 0.6, 0.85)
    scores = Scores(knn=0.5, sr=0.25, lr=1.0, few_draws=draws)
    assert json.loads(json.dumps(scores.as_dict())) == {
        **{"knn": 0.5, "sr": 0.25, "lr": 1.0, "few": np.mean(draws), "few_std": np.std(draws)},
        "few_standardised": None,
        "few_draws": list(draws),
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores.knn = 1.0  # type: ignore[misc]


def test_missing_labels_are_named_by_part() -> None:
    x, y = np.eye(6), np.arange(6)
    with pytest.raises(UserError, match="the training rows have no labels"):
        evaluate(x, None, x, y)
    with pytest.raises(UserError, match="the test rows have no labels"):
        evaluate(x, y, x, None)


def test_fewer_rows_than_neighbours_is_an_error() -> None:
    with pytest.raises(UserError, match="k is 5, but must be from 1 to the number of training rows, which is 4"):
        evaluate(np.eye(4), np.arange(4), np.eye(4), np.arange(4))


def test_lone_and_unknown_classes_are_fine() -> None:
    x = np.concatenate([np.zeros((10, 2)), np.full((10, 2), 5.0), np.full((1, 2), 50.0)])
    y = np.repeat([0, 1, 2], [10, 10, 1])
    scores = evaluate(x, y, np.array([[0.0, 0.0], [5.0, 5.0]]), np.array([0, 8]))
    assert scores.knn == scores.lr == scores.few == 0.5
