from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.noise.distributions import (
    BASE_DRAWS,
    BASE_VARIANCES,
    REPARAMETERISATIONS,
    expected_rms,
    gaussian,
    uniform,
    unit_rms,
)

LIVE = torch.tensor([[True, False, True], [True, True, False]])


def slow_noise(distribution: str, mean: Tensor, scale: Tensor, draw: Tensor) -> np.ndarray:
    """Equation 19 and its uniform sibling, one entry at a time."""
    result = np.empty(scale.shape)
    for index in np.ndindex(*scale.shape):
        mu, s, n = (float(t[index]) for t in (mean, scale, draw))
        result[index] = mu + s * n if distribution == "gaussian" else (mu - s) + 2 * s * n
    return result


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_agrees_with_one_entry_at_a_time(distribution: str) -> None:
    torch.manual_seed(0)
    mean, scale = torch.randn(4, 2, 3), torch.rand(4, 2, 3)
    draw = BASE_DRAWS[distribution](scale)
    noise = REPARAMETERISATIONS[distribution](mean, scale, draw)
    np.testing.assert_allclose(noise.numpy(), slow_noise(distribution, mean, scale, draw), atol=1e-5)


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_gradient_in_mean_and_scale_agrees_with_finite_differences(distribution: str) -> None:
    torch.manual_seed(0)
    mean = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    scale = torch.rand(4, 3, dtype=torch.float64, requires_grad=True)
    draw = BASE_DRAWS[distribution](scale.detach())
    assert torch.autograd.gradcheck(lambda m, s: REPARAMETERISATIONS[distribution](m, s, draw), (mean, scale))


def test_gaussian_gradient_in_the_scale_is_the_draw() -> None:
    scale, draw = torch.ones(3, requires_grad=True), torch.tensor([-1.0, 0.0, 2.0])
    (gradient,) = torch.autograd.grad(gaussian(0.0, scale, draw).sum(), scale)
    assert gradient.tolist() == draw.tolist()


def test_uniform_ends_at_the_mean_plus_and_minus_the_width() -> None:
    width = torch.tensor([0.5, 3.0])
    assert uniform(1.0, width, torch.zeros(2)).tolist() == [0.5, -2.0]
    assert uniform(1.0, width, torch.ones(2)).tolist() == [1.5, 4.0]


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_zero_scale_leaves_the_mean(distribution: str) -> None:
    mean, scale = torch.tensor([1.0, -2.0]), torch.zeros(2)
    assert REPARAMETERISATIONS[distribution](mean, scale, BASE_DRAWS[distribution](scale)).tolist() == mean.tolist()


def test_every_draw_of_unit_rms_has_it_over_its_live_features() -> None:
    noise = torch.randn(4, 5, 2, 3) * torch.logspace(-3, 3, 5)[:, None, None] * LIVE
    unit = unit_rms(noise, LIVE)
    for draw, scaled in zip(noise.flatten(0, 1), unit.flatten(0, 1), strict=True):
        rms = math.sqrt(sum(value**2 for value in draw[LIVE].tolist()) / 4)
        torch.testing.assert_close(scaled, draw / rms)


@pytest.mark.parametrize("distribution", REPARAMETERISATIONS)
@pytest.mark.parametrize("learned", [False, True])
def test_the_expected_rms_is_that_of_many_draws(distribution: str, learned: bool) -> None:
    scale = LIVE * torch.rand(3, 2, 3)
    mean = LIVE * torch.randn(3, 2, 3) if learned else 0.0
    draws = REPARAMETERISATIONS[distribution](mean, scale, BASE_DRAWS[distribution](scale.expand(20_000, 3, 2, 3)))
    expected = expected_rms(mean, scale, LIVE, variance=BASE_VARIANCES[distribution])
    assert expected.shape == (3, 1, 1)
    measured = (draws.square().sum(dim=(2, 3)).mean(dim=0) / 4).sqrt()
    torch.testing.assert_close(expected.flatten(), measured, rtol=0.02, atol=0)


def test_nothing_has_no_size_and_stays_nothing() -> None:
    nothing, dead = torch.zeros(2, 3), torch.zeros(3, dtype=torch.bool)
    assert torch.equal(unit_rms(nothing, dead), nothing)
    assert float(expected_rms(0.0, nothing, dead, variance=1.0).max()) < 1e-10
