"""The diagram of the documents says of methods what SciPy's tests say."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pinoise.experiments.results import Line
from pinoise.experiments.significance import holm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from diagrams import critical_difference, rank_diagrams, runs_alike


def test_groups_are_the_longest_runs_without_a_pair_that_differs() -> None:
    random = np.random.default_rng(0)
    order = "abcdefg"
    for _ in range(50):
        p = {pair: float(random.choice([0.01, 0.5], p=[0.3, 0.7])) for pair in combinations(order, 2)}
        runs = [order[i:j] for i in range(7) for j in range(i + 2, 8)]
        alike = [run for run in runs if all(p[pair] >= 0.05 for pair in combinations(run, 2))]
        longest = [run for run in alike if not any(run in other and run != other for other in alike)]
        assert ["".join(run) for run in runs_alike(order, p)] == longest


def test_all_pairs_are_tested_and_corrected_together() -> None:
    scores = dict(zip(("raw", "fixed", "pinda"), np.random.default_rng(1).random((3, 8)), strict=True))
    lines = [
        Line(f"set{n}", method, {"few": float(few)}, {}, 1.0, ())
        for method, values in scores.items()
        for n, few in enumerate(values)
    ]
    found = critical_difference(lines, "few")
    assert found is not None
    pairs = list(combinations(found.ranks, 2))
    p = [float(stats.wilcoxon(scores[a] - scores[b]).pvalue) for a, b in pairs]
    assert list(found.p) == pairs
    assert list(found.p.values()) == pytest.approx(holm(p))
    assert found.friedman == pytest.approx(stats.friedmanchisquare(*scores.values()).pvalue)
    assert (found.friedman > 0.05, found.groups) == (True, [tuple(found.ranks)])  # random scores
    assert len(rank_diagrams({"few-label": found}, {}).axes) == 1
