from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.noise.rows import neighbour_spread
from pinoise.noise.sigma import FARTHEST, inverse_norm, mean_log_ratio_squared, prior_scale


@pytest.mark.parametrize(("rows", "k"), [(2, 1), (9, 1), (9, 4)])
def test_neighbour_spread_agrees_with_one_pair_at_a_time(rows: int, k: int) -> None:
    x, neighbours = torch.randn(rows, 3), torch.randint(rows, (rows, k))
    expected = [
        math.sqrt(
            sum((float(x[n, j]) - float(x[i, j])) ** 2 for i in range(rows) for n in neighbours[i]) / rows / k / 2
        )
        for j in range(3)
    ]
    pairs = torch.stack([torch.arange(rows).repeat_interleave(k), neighbours.flatten()], dim=1)
    np.testing.assert_allclose(neighbour_spread(x, pairs).numpy(), expected, rtol=1e-5)


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


def slow_inverse_norm(noise: Tensor, drew: list[bool]) -> float:
    norms = [
        math.sqrt(sum(float(value) ** 2 for value in sample.flatten()))
        for sample, chosen in zip(noise, drew, strict=True)
        if chosen
    ]
    return 1 / (sum(norms) / len(norms)) if norms else 0.0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2)])
def test_the_inverse_norm_agrees_with_one_sample_at_a_time(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    noise = torch.randn(6, *shape, dtype=torch.float64)
    drew = [True, False, True, True, False, False]
    assert float(inverse_norm(noise)) == pytest.approx(slow_inverse_norm(noise, [True] * 6))
    assert float(inverse_norm(noise, torch.tensor(drew))) == pytest.approx(slow_inverse_norm(noise, drew))


def test_the_inverse_norm_is_zero_with_zero_gradient_where_nobody_drew() -> None:
    noise = torch.randn(4, 3, requires_grad=True)
    penalty = inverse_norm(noise, torch.zeros(4, dtype=torch.bool))
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        (gradient,) = torch.autograd.grad(penalty, noise)
    assert penalty.item() == 0
    assert bool((gradient == 0).all())


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("drew", [None, torch.tensor([True, False, True])], ids=["all", "some"])
def test_the_prior_terms_gradient_agrees_with_finite_differences_and_spares_the_dead(
    samples: int, drew: Tensor | None
) -> None:
    live = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    raw = (torch.rand(samples, 4, dtype=torch.float64) + 0.5).requires_grad_()
    prior = torch.rand(4, dtype=torch.float64) + 0.1

    def value(raw: Tensor) -> Tensor:
        return mean_log_ratio_squared(live * raw, prior, drew)

    (gradient,) = torch.autograd.grad(value(raw), raw)
    assert bool(gradient.isfinite().all())
    assert bool((gradient[:, 1] == 0).all())
    assert torch.autograd.gradcheck(value, (raw,))
