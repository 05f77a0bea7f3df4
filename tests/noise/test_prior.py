from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pinoise.noise import neighbour_spread, prior_scale
from pinoise.noise.scale_maps import FARTHEST


@pytest.mark.parametrize(("rows", "k"), [(2, 1), (9, 1), (9, 4)])
def test_neighbour_spread_agrees_with_one_pair_at_a_time(rows: int, k: int) -> None:
    x, neighbours = torch.randn(rows, 3), torch.randint(rows, (rows, k))
    expected = [
        math.sqrt(
            sum((float(x[n, j]) - float(x[i, j])) ** 2 for i in range(rows) for n in neighbours[i]) / rows / k / 2
        )
        for j in range(3)
    ]
    np.testing.assert_allclose(neighbour_spread(x, neighbours).numpy(), expected, rtol=1e-5)


def test_neighbour_spread_of_independent_draws_is_their_deviation() -> None:
    x = torch.randn(20_000, 2) * torch.tensor([0.5, 3.0])
    spread = neighbour_spread(x, torch.randint(20_000, (20_000, 2)))
    np.testing.assert_allclose(spread.numpy(), [0.5, 3.0], rtol=0.03)


def test_prior_scale_is_the_spread_in_deviations_within_limits_around_its_median() -> None:
    spread = torch.tensor([[0.0, 1.0, 8.0], [30.0, 1e-4, 5.0], [400.0, 0.0, 0.9]])
    unit = torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 5.0], [1.0, 0.0, 1.0]])
    relative = {(i, j): float(spread[i, j] / unit[i, j]) for i in range(3) for j in range(3) if unit[i, j] > 0}
    differing = sorted(value for value in relative.values() if value > 0)  # seven of them
    middle = differing[3]
    limit = math.exp(FARTHEST)
    prior = prior_scale(spread, unit)
    for place, value in relative.items():
        assert float(prior[place]) == pytest.approx(min(max(value, middle / limit), middle * limit))
    assert float(prior[2, 1]) == 1  # dead


def test_prior_scale_is_the_limit_below_one_where_no_neighbours_differ() -> None:
    limit = math.exp(FARTHEST)
    assert prior_scale(torch.zeros(3), torch.tensor([1.0, 0.0, 2.0])).tolist() == pytest.approx(
        [1 / limit, 1, 1 / limit]
    )


def test_neighbours_that_hardly_differ_get_a_prior_that_teaches() -> None:
    spread = torch.tensor([0.01, 0.02, 0.04])
    raised = prior_scale(spread, torch.ones(3))
    assert float(raised.median()) == pytest.approx(0.1)
    torch.testing.assert_close(raised / raised[1], spread / spread[1])
    torch.testing.assert_close(prior_scale(10 * spread, torch.ones(3)), 10 * spread)
