from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pinoise.experiments.significance import (
    Interval,
    against,
    against_all,
    bootstrap_mean,
    holm,
    wilcoxon,
)


def two_levels(seeds: int, repetitions: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two methods, where seeds differ more than the repetitions of a seed."""
    random = np.random.default_rng(7)
    gaps = 0.02 + random.normal(0, 0.03, (seeds, 1)) + random.normal(0, 0.01, (seeds, repetitions))
    rival = random.normal(0.8, 0.05, (seeds, repetitions))
    return rival + gaps, rival


def width(difference: Interval) -> float:
    return difference.high - difference.low


def test_wilcoxon_is_the_share_of_sign_patterns_at_least_as_uneven() -> None:
    first, second = [0.9, 0.8, 0.7, 0.9, 0.6, 0.3, 0.5], [0.5, 0.5, 0.5, 0.8, 0.55, 0.45, 0.25]
    gaps = np.subtract(first, second)
    ranks = stats.rankdata(np.abs(gaps))
    uneven = abs(ranks @ np.sign(gaps))
    patterns = [abs(ranks @ np.array(signs)) for signs in product((-1, 1), repeat=len(gaps))]
    assert wilcoxon(gaps) == pytest.approx(np.mean([value >= uneven - 1e-9 for value in patterns]))
    assert wilcoxon(-gaps) == wilcoxon(gaps)


def rejected(p: list[float], level: float) -> set[int]:
    """Holm's procedure, step by step: the smallest p-values, as long as each passes its own level."""
    found: set[int] = set()
    for step, number in enumerate(sorted(range(len(p)), key=lambda number: p[number])):
        if p[number] > level / (len(p) - step) * (1 + 1e-12):
            break
        found.add(number)
    return found


def test_a_corrected_p_value_is_the_smallest_level_at_which_holms_procedure_rejects() -> None:
    random = np.random.default_rng(0)
    for size in (1, 2, 5, 9):
        p = [*random.random(size - 1) ** 3, 0.01]
        p[0] = p[-1]  # equal ones
        for number, corrected in enumerate(holm(p)):
            if corrected < 1:
                assert number in rejected(p, corrected)
            assert number not in rejected(p, 0.999 * corrected)
            assert p[number] <= corrected <= 1


def test_an_example_worked_by_hand_is_corrected_so() -> None:
    # .005 × 4 = .02, .01 × 3 = .03, .03 × 2 = .06; .04 × 1 is below .06 and becomes it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_rivals_are_corrected_for_their_number() -> None:
    random = np.random.default_rng(1)
    gains = np.array([0.4, 0.2, 0.0, 0.0])
    scores = {f"set{i}": dict(zip("abcd", random.random(4) + gains, strict=True)) for i in range(12)}
    found = against_all(scores, "a", ["b", "c", "d"])
    assert [item.p for item in found] == [against(scores, "a", rival).p for rival in "bcd"]
    assert [item.holm for item in found] == holm([item.p for item in found])


def test_wilcoxon_of_scores_without_a_difference_is_one() -> None:
    assert wilcoxon([0.0, 0.0]) == 1.0
    assert wilcoxon([0.1 + 0.2 - 0.3]) == 1.0  # they differ in the last bit only


def test_with_one_seed_the_interval_is_that_of_scipy() -> None:
    first, second = two_levels(1, 10)
    ours = bootstrap_mean(first - second)
    theirs = stats.bootstrap(
        ((first - second)[0],), np.mean, method="percentile", n_resamples=10_000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.mean == pytest.approx(np.mean(first - second))
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width(ours))
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width(ours))


def test_seeds_are_drawn_first_and_repetitions_inside_them() -> None:
    first, second = two_levels(4, 5)
    gaps = first - second
    random = np.random.default_rng(3)
    means = []
    for _ in range(4000):
        sample = [random.choice(gaps[random.integers(4)], 5) for _ in range(4)]
        means.append(np.mean(sample))
    low, high = np.quantile(means, [0.025, 0.975])
    ours = bootstrap_mean(first - second)
    assert ours.low == pytest.approx(low, abs=0.04 * width(ours))
    assert ours.high == pytest.approx(high, abs=0.04 * width(ours))


def test_the_interval_has_the_width_of_two_levels_of_variance() -> None:
    first, second = two_levels(30, 10)
    gaps = first - second
    variance = (gaps.mean(axis=1).var() + gaps.var(axis=1).mean() / 10) / 30  # of means of such samples
    expected = 2 * stats.norm.ppf(0.95) * variance**0.5
    assert width(bootstrap_mean(first - second, level=0.9)) == pytest.approx(expected, rel=0.06)
    as_one_seed = bootstrap_mean((first - second).reshape(1, -1), level=0.9)
    assert width(as_one_seed) < 0.6 * expected  # what forgetting the seeds would claim


def test_a_method_against_a_rival_names_the_sets_it_loses() -> None:
    raw = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.5}
    scarf = {"a": 0.6, "b": 0.4, "c": 0.5, "d": 0.8, "f": 0.9}
    scores: dict[str, dict[str, float]] = {name: {} for name in "abcdef"}
    for method, values in (("raw", raw), ("scarf", scarf)):
        for name, value in values.items():
            scores[name][method] = value
    found = against(scores, "scarf", "raw")
    assert (found.sets, found.wins, found.losses) == (4, 2, ("b",))
    assert found.median == pytest.approx(0.05)
    assert found.p == wilcoxon([0.1, -0.1, 0.0, 0.3])
    other = against(scores, "raw", "scarf")
    assert (other.wins, other.losses, other.p) == (1, ("a", "d"), found.p)
