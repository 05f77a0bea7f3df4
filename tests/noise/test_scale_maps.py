from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.noise.sigma import FARTHEST, SCALE_MAPS, fixed_entropy

SHAPES = [(6,), (2, 3), (3, 1, 2)]


def slow_fixed_entropy(raw: np.ndarray, initial: np.ndarray, live: np.ndarray) -> np.ndarray:
    """The docstring's equation for vectors (m, d), one sample and one feature at a time."""
    alive = [j for j in range(len(initial)) if live[j]]
    level = sum(math.log(initial[j]) for j in alive) / len(alive)
    result = np.zeros(raw.shape)
    for i in range(len(raw)):
        bounded = []
        for j in range(len(initial)):
            share = min(max((math.log(initial[j]) - level) / FARTHEST, -0.97), 0.97)
            start = FARTHEST / 3 * math.atanh(share)
            bounded.append(FARTHEST * math.tanh(3 * (raw[i, j] + start) / FARTHEST))
        mean = sum(bounded[j] for j in alive) / len(alive)
        result[i] = [math.exp(value - mean + level) for value in bounded]
    return result


def double(*shape: int, spread: float = 1.0) -> Tensor:
    return spread * torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("name", SCALE_MAPS)
@pytest.mark.parametrize("value", [1e-6, 0.01, 0.3, 1.0, 5.0, 80.0, 1e4])
def test_the_same_initial_scale_for_all_is_given_back_where_the_output_is_0(name: str, value: float) -> None:
    initial = torch.full((3,), value, dtype=torch.float64)
    scale = SCALE_MAPS[name](torch.zeros(2, 3, dtype=torch.float64), initial, torch.ones(3))
    torch.testing.assert_close(scale, initial.expand(2, 3), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", SCALE_MAPS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("samples", [1, 4])
def test_every_feature_starts_at_its_own_initial_scale(name: str, shape: tuple[int, ...], samples: int) -> None:
    initial = torch.linspace(0.2, 1.7, 6, dtype=torch.float64).reshape(shape)
    scale = SCALE_MAPS[name](torch.zeros(samples, *shape, dtype=torch.float64), initial, torch.ones(shape))
    torch.testing.assert_close(scale, initial.expand(samples, *shape))


@pytest.mark.parametrize("name", SCALE_MAPS)
def test_the_gradient_agrees_with_finite_differences(name: str) -> None:
    initial, live = torch.rand(2, 3, dtype=torch.float64) + 0.1, torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    raw = double(3, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: SCALE_MAPS[name](raw, initial, live), (raw,))


def test_softplus_agrees_with_its_definition() -> None:
    points = torch.linspace(-10, 10, 41, dtype=torch.float64)
    s = 0.4
    expected = [math.log1p(math.exp(float(point) + math.log(math.exp(s) - 1))) for point in points]
    got = SCALE_MAPS["softplus"](points, torch.full_like(points, s), torch.ones_like(points))
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_fixed_entropy_agrees_with_one_entry_at_a_time(spread: float) -> None:
    initial = double(7).exp() * torch.tensor([1, 1, 1, 50, 1 / 50, 1, 1])
    live = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    raw = double(4, 7, spread=spread)
    expected = slow_fixed_entropy(raw.numpy(), initial.numpy(), live.numpy())
    np.testing.assert_allclose(fixed_entropy(raw, initial, live).numpy(), expected, rtol=1e-10)


def test_fixed_entropy_starts_features_beyond_the_limit_at_the_limit() -> None:
    initial = torch.ones(100, dtype=torch.float64)
    initial[0], initial[1] = math.exp(5.0), math.exp(-5.0)
    scale = fixed_entropy(torch.zeros(1, 100, dtype=torch.float64), initial, torch.ones(100))[0]
    assert float(scale[0].log()) == pytest.approx(0.97 * FARTHEST)
    assert float(scale[1].log()) == pytest.approx(-0.97 * FARTHEST)
    torch.testing.assert_close(scale[2:], initial[2:])


def test_dead_features_neither_count_nor_matter_to_fixed_entropy() -> None:
    live = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    initial, raw = double(5, spread=0.3).exp(), double(3, 5)
    scale = fixed_entropy(raw, initial, live)
    alone = fixed_entropy(raw[:, live > 0], initial[live > 0], torch.ones(3))
    torch.testing.assert_close(scale[:, live > 0], alone)
    other = fixed_entropy(raw + 7 * (1 - live), torch.where(live > 0, initial, 1e4), live)
    torch.testing.assert_close(other[:, live > 0], alone)
