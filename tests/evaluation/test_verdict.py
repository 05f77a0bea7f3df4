"""Verdicts and agreement, compared with SciPy and with a slow, obvious search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_wine

from pinoise.errors import UserError
from pinoise.evaluation.knn import neighbour_agreement
from pinoise.evaluation.verdict import judge, paired_gap


def test_the_interval_is_that_of_a_paired_t_test() -> None:
    random = np.random.default_rng(0)
    raw = random.uniform(0.6, 0.8, 10)
    learned = raw + random.normal(0.02, 0.02, 10)
    gap = paired_gap(learned.tolist(), raw.tolist())
    expected = stats.ttest_rel(learned, raw).confidence_interval(0.95)
    assert gap == pytest.approx(((learned - raw).mean(), expected.low, expected.high))


@pytest.mark.parametrize(
    ("shift", "outcome", "sentence"),
    [
        (0.05, "better", "Better than raw features: with 10 labels per class, accuracy is 5.1"),
        (-0.11, "worse", "Worse than raw features: with 10 labels per class, accuracy is 10.9"),
        (0.0, "level", "Not told apart from raw features: with 10 labels per class, accuracy is 0.1"),
    ],
)
def test_a_verdict_says_what_the_interval_allows(shift: float, outcome: str, sentence: str) -> None:
    raw = np.linspace(0.6, 0.8, 10)
    learned = raw + shift + np.tile([0.01, -0.008], 5)
    found = judge(learned.tolist(), raw.tolist(), few="10 labels per class")
    assert found.outcome == outcome
    assert found.sentence.startswith(sentence)
    assert "95 % interval" in found.sentence
    assert ("−" in found.sentence) == (outcome == "level")  # a sign only where the interval has both


def test_equal_scores_are_called_the_same() -> None:
    for scores in ([0.5, 0.75], [0.5, 0.5]):
        found = judge(scores, scores, few="10 labels per class", measured=True)
        assert found.outcome == "level"
        assert found.sentence.endswith("with 10 labels per class, R² is the same in every draw of labels.")


def test_draws_that_are_all_one_tell_no_interval() -> None:
    found = judge([0.75] * 10, [0.5] * 10, few="10 labels per class")
    assert found.outcome == "level"
    assert found.sentence.startswith(
        "How sure cannot be told: with 10 labels per class, accuracy is 25.0 points higher"
    )
    assert math.isnan(paired_gap([0.75] * 10, [0.5] * 10).low)
    with pytest.raises(UserError, match="2 and 1 draws"):
        paired_gap([0.1, 0.2], [0.1])


def test_agreement_is_the_mean_share_of_common_neighbours() -> None:
    x = load_wine().data
    a, b = x[:, :6] / x[:, :6].std(axis=0), x[:, 6:] / x[:, 6:].std(axis=0)

    def others(z: np.ndarray, row: int) -> set[int]:
        order = np.argsort(np.square(z - z[row]).sum(axis=1), kind="stable")
        return set(order[order != row][:10].tolist())

    slow = np.mean([len(others(a, row) & others(b, row)) / 10 for row in range(len(x))])
    assert neighbour_agreement(a, b) == pytest.approx(slow)
    assert neighbour_agreement(a, a) == 1


def test_a_row_with_many_copies_has_others_for_neighbours() -> None:
    x = np.concatenate([np.zeros((30, 2)), np.ones((5, 2))])
    assert 0 <= neighbour_agreement(x, x, k=3) <= 1
