from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.training.objectives import Adversarial, Look
from pinoise.views import Batch, GaussianNoise, Viewmaker
from pinoise.views.noise import within_budget

UNIT = torch.tensor([0.5, 0.0, 3.0])
WIDE = torch.tensor([0.5, 0.0, 3.0, 1.0])
SHAPES = [(4,), (2, 2), (1, 2, 2)]


def make_batch(m: int) -> Batch:
    return Batch(torch.randn(m, 3, generator=torch.Generator().manual_seed(0)), torch.arange(m) + 50)


def test_gaussian_noise_has_the_stated_deviation_and_spares_dead_features() -> None:
    torch.manual_seed(0)
    batch = make_batch(20_000)
    added = GaussianNoise(UNIT, sigma=0.7)(batch).x - batch.x
    assert bool((added[:, 1] == 0).all())
    deviation = 0.7 * UNIT
    assert bool((added.mean(0).abs() <= 5 * deviation / math.sqrt(20_000)).all())
    assert bool(((added.std(0) - deviation).abs() <= 5 * deviation / math.sqrt(40_000)).all())
    standard = added[:, UNIT > 0] / deviation[UNIT > 0]
    # The fourth moment of a normal variable is 3, of variance 96 in its estimate.
    assert bool(((standard**4).mean(0) - 3).abs().max() < 5 * math.sqrt(96 / 20_000))
    assert abs(float(torch.corrcoef(standard.T)[0, 1])) < 5 / math.sqrt(20_000)


def slow_within_budget(perturbation: np.ndarray, unit: np.ndarray, budget: float) -> np.ndarray:
    """Vectors (m, d), one sample at a time."""
    live = [j for j in range(len(unit)) if unit[j] > 0]
    result = np.zeros(perturbation.shape)
    for i, sample in enumerate(perturbation):
        size = sum(abs(sample[j]) for j in live) / len(live)
        for j in live:
            result[i, j] = unit[j] * sample[j] * budget / size
    return result


def batch_of(x: Tensor) -> Batch:
    return Batch(x, torch.arange(len(x)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("budget", [0.05, 1.0, 7.0])
def test_within_budget_agrees_with_one_sample_at_a_time(shape: tuple[int, ...], budget: float) -> None:
    perturbation = torch.randn(5, *shape) * torch.tensor([1e-3, 1.0, 30.0, 1.0, 1.0]).reshape(-1, *[1] * len(shape))
    got = within_budget(perturbation, WIDE.reshape(shape), budget=budget)
    assert got.shape == perturbation.shape
    expected = slow_within_budget(perturbation.flatten(1).double().numpy(), WIDE.double().numpy(), budget)
    np.testing.assert_allclose(got.flatten(1).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("budget", [0.05, 2.0])
def test_every_view_spends_the_budget_on_live_features(shape: tuple[int, ...], budget: float) -> None:
    unit = WIDE.reshape(shape)
    x = torch.randn(6, *shape)
    with torch.no_grad():
        moved = Viewmaker(unit, budget=budget, hidden=8)(batch_of(x)).x - x
    assert bool((moved[:, unit == 0] == 0).all())
    size = (moved[:, unit > 0] / unit[unit > 0]).abs().mean(dim=1)
    torch.testing.assert_close(size, torch.full((6,), budget), rtol=1e-4, atol=1e-5)


def test_views_depend_on_the_sample_and_on_chance() -> None:
    view = Viewmaker(torch.ones(4), hidden=8)
    same = torch.zeros(2, 4)
    with torch.no_grad():
        first, second = view(batch_of(same)).x
        assert not torch.allclose(first, second)
        x = torch.randn(1, 4)
        torch.manual_seed(1)
        one = view(batch_of(x)).x - x
        torch.manual_seed(1)
        other = view(batch_of(x + 5)).x - (x + 5)
    assert not torch.allclose(one, other, atol=1e-4)


def test_under_the_adversarial_objective_a_step_raises_the_loss() -> None:
    view = Viewmaker(torch.ones(4), hidden=16)
    batch, target = batch_of(torch.randn(32, 4)), torch.randn(4)

    def value() -> Tensor:
        torch.manual_seed(3)
        losses = (view(batch).with_gradient(Adversarial.psi).x - target).square().sum(dim=1)
        found: Tensor = Adversarial()(Look(losses))
        return found

    before = value()
    gradients = torch.autograd.grad(before, list(view.parameters()))
    with torch.no_grad():
        for weight, gradient in zip(view.parameters(), gradients, strict=True):
            weight.sub_(0.01 * gradient)
    after = value()
    assert float(after.detach()) > float(before.detach()) + 0.01
