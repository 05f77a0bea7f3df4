from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from pinoise.experiments.ranking import mean_ranks
from pinoise.experiments.significance import against

METHODS = ("raw", "fixed", "scarf", "simcl", "clae")


def table(values: np.ndarray) -> dict[str, dict[str, float]]:
    return {f"set{i}": dict(zip(METHODS, row, strict=True)) for i, row in enumerate(values.tolist())}


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_scipy_also_with_ties(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 4, size=(7, 5)) / 4  # four values for five methods: ties
    expected = rankdata(-values, axis=1).mean(axis=0)
    ranks = mean_ranks(table(values))
    assert list(ranks) == list(METHODS)
    np.testing.assert_allclose(list(ranks.values()), expected)


def test_a_method_that_a_set_lacks_is_left_out_and_takes_no_rank_from_others() -> None:
    scores = {"a": {"raw": 0.1, "best": 0.9, "fixed": 0.5}, "b": {"fixed": 0.6, "raw": 0.2}}
    assert mean_ranks(scores) == {"raw": 2.0, "fixed": 1.0}


def test_nothing_in_common_gives_no_ranks() -> None:
    assert mean_ranks({}) == {}
    assert mean_ranks({"a": {"raw": 0.1}, "b": {"fixed": 0.6}}) == {}


def test_equal_means_that_differ_in_their_last_bits_are_a_tie() -> None:
    scores = {"a": {"raw": 0.1 + 0.2, "fixed": 0.3}}
    assert scores["a"]["raw"] > scores["a"]["fixed"]
    assert mean_ranks(scores) == {"raw": 1.5, "fixed": 1.5}
    assert against(scores, "raw", "fixed").wins == 0
