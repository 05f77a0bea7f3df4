from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.noise.generators import FARTHEST, SCALE_MAPS, fixed_entropy, inverse_softplus

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


def mean_log(scale: Tensor, live: Tensor) -> Tensor:
    """Mean of log σ over the live features of every sample (m,)."""
    return torch.stack([sample[live > 0].log().mean() for sample in scale])


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
def test_the_map_is_never_negative(name: str) -> None:
    raw = torch.linspace(-200, 200, 4001)
    scale = SCALE_MAPS[name](raw[None], torch.full_like(raw, 0.3), torch.ones_like(raw))
    assert bool((scale >= 0).all())
    assert bool(scale.isfinite().all())


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


def test_softplus_keeps_a_gradient_where_the_scale_is_small() -> None:
    raw = torch.zeros(1, requires_grad=True)
    (slope,) = torch.autograd.grad(SCALE_MAPS["softplus"](raw, torch.tensor([1e-4]), torch.ones(1)), raw)
    # The derivative of softplus is the logistic function, which at small σ is σ itself.
    assert float(slope) == pytest.approx(1e-4, rel=1e-3)


def test_abs_is_the_distance_of_the_output_from_minus_the_initial_scale() -> None:
    got = SCALE_MAPS["abs"](torch.tensor([[-2.0, -0.5, 3.0]]), torch.tensor([0.5, 0.5, 1.0]), torch.ones(3))
    assert got.tolist() == [[1.5, 0.0, 4.0]]


@pytest.mark.parametrize("value", [1e-6, 0.01, 0.3, 1.0, 5.0, 80.0, 1e4])
def test_the_inverse_undoes_softplus(value: float) -> None:
    point = inverse_softplus(torch.tensor(value, dtype=torch.float64))
    assert float(torch.nn.functional.softplus(point)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_fixed_entropy_agrees_with_one_entry_at_a_time(spread: float) -> None:
    initial = double(7).exp() * torch.tensor([1, 1, 1, 50, 1 / 50, 1, 1])
    live = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    raw = double(4, 7, spread=spread)
    expected = slow_fixed_entropy(raw.numpy(), initial.numpy(), live.numpy())
    np.testing.assert_allclose(fixed_entropy(raw, initial, live).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 100.0])
def test_fixed_entropy_keeps_the_mean_log_scale_of_every_sample(shape: tuple[int, ...], spread: float) -> None:
    initial = double(*shape, spread=0.5).exp()
    live = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 1.0]).reshape(shape)
    scale = fixed_entropy(double(5, *shape, spread=spread), initial, live)
    torch.testing.assert_close(mean_log(scale, live), mean_log(initial[None], live).expand(5))


def test_fixed_entropy_keeps_the_mean_even_where_initial_scales_are_beyond_the_limit() -> None:
    initial = torch.tensor([1e-5, 1.0, 1.0, 1e3], dtype=torch.float64)
    scale = fixed_entropy(double(5, 4), initial, torch.ones(4))
    torch.testing.assert_close(mean_log(scale, torch.ones(4)), initial.log().mean().expand(5))


def test_fixed_entropy_bounds_every_scale_and_the_ratio_of_any_two() -> None:
    raw = 1e3 * (2.0 * torch.eye(8, dtype=torch.float64) - 1)  # every feature in turn against all others
    raw = torch.cat([raw, -raw])
    initial = double(8, spread=0.5).exp()
    relative = fixed_entropy(raw, initial, torch.ones(8)).log() - initial.log().mean()
    assert float(relative.abs().max()) < 2 * FARTHEST
    ranges = relative.amax(dim=1) - relative.amin(dim=1)
    torch.testing.assert_close(ranges, torch.full_like(ranges, 2 * FARTHEST))  # saturated, and no farther


def test_fixed_entropy_starts_features_beyond_the_limit_at_the_limit() -> None:
    initial = torch.ones(100, dtype=torch.float64)
    initial[0], initial[1] = math.exp(5.0), math.exp(-5.0)
    scale = fixed_entropy(torch.zeros(1, 100, dtype=torch.float64), initial, torch.ones(100))[0]
    assert float(scale[0].log()) == pytest.approx(0.97 * FARTHEST)
    assert float(scale[1].log()) == pytest.approx(-0.97 * FARTHEST)
    torch.testing.assert_close(scale[2:], initial[2:])


def test_fixed_entropy_lets_a_feature_at_the_limit_come_back() -> None:
    initial = torch.tensor([1e-6, 1.0, 1.0, 1.0])
    raw = torch.zeros(1, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(fixed_entropy(raw, initial, torch.ones(4)).log()[0, 0], raw)
    assert float(slope[0, 0]) > 0.1


def test_dead_features_neither_count_nor_matter_to_fixed_entropy() -> None:
    live = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    initial, raw = double(5, spread=0.3).exp(), double(3, 5)
    scale = fixed_entropy(raw, initial, live)
    alone = fixed_entropy(raw[:, live > 0], initial[live > 0], torch.ones(3))
    torch.testing.assert_close(scale[:, live > 0], alone)
    other = fixed_entropy(raw + 7 * (1 - live), torch.where(live > 0, initial, 1e4), live)
    torch.testing.assert_close(other[:, live > 0], alone)


def test_the_gradient_of_live_features_does_not_reach_dead_ones() -> None:
    live = torch.tensor([1.0, 0.0, 1.0])
    raw = double(2, 3).requires_grad_()
    scale = fixed_entropy(raw, torch.ones(3, dtype=torch.float64), live)
    (gradient,) = torch.autograd.grad((scale * live).square().sum(), raw)
    assert bool((gradient[:, 1] == 0).all())
    assert bool((gradient[:, [0, 2]] != 0).all())


def test_the_entropy_of_fixed_entropy_noise_has_no_gradient() -> None:
    raw = double(4, 6).requires_grad_()
    scale = fixed_entropy(raw, double(6, spread=0.5).exp(), torch.ones(6))
    (gradient,) = torch.autograd.grad(scale.log().sum(), raw)
    assert float(gradient.abs().max()) < 1e-12
