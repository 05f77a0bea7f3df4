from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pinoise.evaluation import voting
from pinoise.evaluation.few_labels import FewLabelClassifier
from pinoise.evaluation.student import most_confident, student_weight, teach
from pinoise.evaluation.voting import Candidate, Vote, Voter, unit_factor

WHOLE = Candidate("joined", "logistic", 1.0)


def rows(counts: list[int], *, seed: int, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return classes of these sizes around centres that do not depend on the seed, nearer in wide data."""
    random = np.random.default_rng(seed)
    centres = 15 / width * np.random.default_rng(9).normal(size=(len(counts), width))
    y = np.repeat(np.arange(len(counts)), counts)
    return centres[y] + random.normal(size=(len(y), width)), y


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("few_trees")
def test_two_labels_of_many_classes_are_no_reason_to_warn() -> None:
    Z, y = rows([2] * 20, seed=0)
    FewLabelClassifier.fit(Z, y, Z, classes=range(20), raw=3, seed=0)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_student_is_logistic_regression_on_labels_and_on_what_the_vote_is_sure_of(classes: int) -> None:
    (Z, y), (unlabelled, _) = rows([3] * classes, seed=0), rows([30] * classes, seed=1)
    vote = Vote([Voter(Candidate("raw", "trees", None), 1.0, 0.9, 0.3)], Z, y, raw=4, seed=0)
    student = teach(vote, WHOLE, Z, y, unlabelled, seed=0)
    assert student is not None
    p = vote.probabilities(unlabelled)
    sure = sorted(range(len(p)), key=lambda row: -p[row].max())[: len(p) // 2]
    X, labels = np.vstack([Z, unlabelled[sure]]), [*y, *p[sure].argmax(axis=1)]
    slow = LogisticRegression(tol=1e-8, max_iter=10_000).fit(unit_factor(X) * X, labels)
    expected = slow.predict_proba(unit_factor(X) * unlabelled)
    np.testing.assert_allclose(student.probabilities(unlabelled), expected, atol=0.01)
    mixed = FewLabelClassifier((), vote, student).probabilities(unlabelled)
    share = 15 * classes / (15 * classes + 3 * classes)
    np.testing.assert_allclose(mixed, (1 - share / 2) * p + share / 2 * student.probabilities(unlabelled))


def test_unlabelled_rows_make_up_for_labels() -> None:
    alone, taught = [], []
    for seed in range(10):
        (Z, y), (unlabelled, truth) = rows([2] * 3, seed=seed, width=30), rows([100] * 3, seed=100 + seed, width=30)
        vote = Vote([Voter(WHOLE, 1.0, 0.9, 0.3)], Z, y, raw=3, seed=0)
        model = FewLabelClassifier((), vote, teach(vote, WHOLE, Z, y, unlabelled, seed=0))
        alone.append(np.mean(vote.probabilities(unlabelled).argmax(axis=1) == truth))
        taught.append(np.mean(model.probabilities(unlabelled).argmax(axis=1) == truth))
    assert np.mean(taught) > np.mean(alone) + 0.03


@pytest.mark.usefixtures("few_trees")
def test_without_unlabelled_rows_the_vote_is_alone() -> None:
    Z, y = rows([5] * 2, seed=0)
    model = FewLabelClassifier.fit(Z, y, Z[:0], classes=("no", "yes"), raw=3, seed=0)
    assert model.student is None
    np.testing.assert_array_equal(model.probabilities(Z), model.vote.probabilities(Z))
    assert model.lines() == [str(voter) for voter in model.vote.voters]
    shares = [voter.weight for voter in model.vote.voters]
    assert shares == sorted(shares, reverse=True)
    assert model.table()["weight"] == [each.weight for each in model.vote.candidates]


def test_the_weight_falls_with_the_number_of_labels_and_confident_rows_come_first() -> None:
    found = [student_weight(1000, labelled) for labelled in (0, 10, 1000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 0.5
    assert found[-1] < voting.LEAST_WEIGHT
    p = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)
    chosen = most_confident(p, 0.3)
    assert len(chosen) == 15
    assert p[chosen].max(axis=1).min() >= np.delete(p, chosen, axis=0).max()
