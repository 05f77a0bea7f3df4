from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from pinoise.evaluation import voting
from pinoise.evaluation.voting import (
    Candidate,
    Vote,
    Voter,
    choose,
    deal_folds,
    fit_model,
    held_out_probabilities,
    rows_for_choosing,
    score,
    unit_factor,
)


def blobs(counts: list[int], *, width: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return classes of these sizes around random centres."""
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return 0.7 * random.normal(size=(len(counts), width))[y] + random.normal(size=(len(y), width)), y


@pytest.mark.parametrize("counts", [[2, 2], [5, 1, 3], [2] * 10, [40, 3, 7]])
def test_folds_are_even_and_leave_some_of_every_class_to_learn_from(counts: list[int]) -> None:
    _, y = blobs(counts)
    folds = min(5, len(y))
    fold = deal_folds(y, folds, seed=3)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for number, count in enumerate(counts):
        inside = np.bincount(fold[y == number], minlength=folds)
        assert inside.max() - inside.min() <= 1
        assert count == 1 or inside.max() < count


@pytest.mark.parametrize("rows", [12, 90])  # fewer and more than columns
def test_rotated_logistic_regression_is_that_of_scikit_learn(rows: int) -> None:
    X, y = blobs([rows // 3] * 3)
    new, _ = blobs([5] * 3, seed=1)
    ours = fit_model(Candidate("raw", "logistic", 0.1), 1e-3 * X, y, seed=0)
    theirs = LogisticRegression(C=0.1, tol=1e-8, max_iter=10_000).fit(unit_factor(X) * X, y)
    np.testing.assert_allclose(ours.predict_proba(1e-3 * new), theirs.predict_proba(unit_factor(X) * new), atol=0.02)


@pytest.mark.parametrize("model", ["logistic", "trees"])
def test_held_out_probabilities_are_those_of_cross_val_predict(model: voting.ModelName) -> None:
    X, y = blobs([8, 9, 10], width=6)
    strength = 1.0 if model == "logistic" else None
    fold = deal_folds(y, 5, seed=0)
    ours = held_out_probabilities(Candidate("raw", model, strength), X, y, fold, seed=0)
    slow = LogisticRegression() if model == "logistic" else ExtraTreesClassifier(voting.TREES_JUDGED, random_state=0)
    rows = unit_factor(X) * X if model == "logistic" else X
    theirs = cross_val_predict(slow, rows, y, cv=PredefinedSplit(fold), method="predict_proba")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_only_row_of_a_class_is_never_held_out() -> None:
    X, y = blobs([4, 1, 4])
    p = held_out_probabilities(Candidate("raw", "logistic", 1.0), X, y, deal_folds(y, 5, seed=0), seed=0)
    assert np.isnan(p[4]).all()
    assert np.isfinite(np.delete(p, 4, axis=0)).all()


def test_a_score_is_the_mean_over_repeated_folds() -> None:
    X, y = blobs([6, 6])
    candidate = Candidate("learned", "logistic", 1.0)
    accuracy, loss = score(candidate, X, y, raw=10, seed=7)
    p = [
        held_out_probabilities(candidate, X[:, 10:], y, deal_folds(y, 5, seed=[7, repeat]), seed=7)
        for repeat in range(2)
    ]
    assert accuracy == pytest.approx(np.mean([each.argmax(axis=1) == y for each in p]))
    assert loss == pytest.approx(np.mean([log_loss(y, each) for each in p]))


def test_features_that_tell_nothing_lose_their_vote_and_others_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voting, "TREES_JUDGED", 20)
    informative, y = blobs([60, 60], width=10)
    noise = np.random.default_rng(5).normal(size=(120, 10))
    for raw, learned, loser in ((noise, informative, "raw"), (informative, noise, "learned")):
        candidates = choose(np.hstack([raw, learned]), y, raw=10, seed=0)
        assert loser not in {each.candidate.features for each in candidates if each.weight}
        assert sum(each.weight for each in candidates) == pytest.approx(1)


def test_a_vote_is_the_weighted_mean_of_its_models() -> None:
    X, y = blobs([10, 10], width=8)
    voters = [
        Voter(Candidate("joined", "logistic", 1.0), 0.75, 0.9, 0.3),
        Voter(Candidate("raw", "trees", None), 0.25, 0.8, 0.4),
    ]
    linear = LogisticRegression(tol=1e-8).fit(unit_factor(X) * X, y)
    trees = ExtraTreesClassifier(voting.TREES, random_state=2).fit(X[:, :3], y)
    expected = 0.75 * linear.predict_proba(unit_factor(X) * X) + 0.25 * trees.predict_proba(X[:, :3])
    np.testing.assert_allclose(Vote(voters, X, y, raw=3, seed=2).probabilities(X), expected, atol=1e-4)


def test_choosing_among_many_labels_is_bounded() -> None:
    y = np.repeat(np.arange(4), [9000, 900, 90, 1])
    rows = rows_for_choosing(y, 1000, seed=0)
    assert len(np.unique(rows)) == len(rows) == pytest.approx(1000, abs=4)
    assert np.bincount(y[rows]).tolist() == [901, 90, 9, 1]
