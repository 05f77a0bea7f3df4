from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pinoise.noise.penalty import inverse_norm, mean_log_ratio_squared


def slow_inverse_norm(noise: Tensor, drew: list[bool]) -> float:
    norms = [
        math.sqrt(sum(float(value) ** 2 for value in sample.flatten()))
        for sample, chosen in zip(noise, drew, strict=True)
        if chosen
    ]
    return 1 / (sum(norms) / len(norms)) if norms else 0.0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2)])
def test_agrees_with_one_sample_at_a_time(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    noise = torch.randn(6, *shape, dtype=torch.float64)
    drew = [True, False, True, True, False, False]
    assert float(inverse_norm(noise)) == pytest.approx(slow_inverse_norm(noise, [True] * 6))
    assert float(inverse_norm(noise, torch.tensor(drew))) == pytest.approx(slow_inverse_norm(noise, drew))


def test_is_zero_with_zero_gradient_where_nobody_drew() -> None:
    noise = torch.randn(4, 3, requires_grad=True)
    penalty = inverse_norm(noise, torch.zeros(4, dtype=torch.bool))
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        (gradient,) = torch.autograd.grad(penalty, noise)
    assert penalty.item() == 0
    assert bool((gradient == 0).all())


def test_gradient_agrees_with_finite_differences_and_skips_those_who_did_not_draw() -> None:
    torch.manual_seed(0)
    noise = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    drew = torch.tensor([True, False, True, False])
    assert torch.autograd.gradcheck(lambda n: inverse_norm(n, drew), (noise,))
    (gradient,) = torch.autograd.grad(inverse_norm(noise, drew), noise)
    assert (gradient != 0).any(1).tolist() == drew.tolist()


def test_samples_without_noise_do_not_spoil_the_gradient_of_the_others() -> None:
    # As in Algorithm 2: those who did not draw π have ε = 0, where the norm has no derivative.
    noise = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(inverse_norm(noise, torch.tensor([True, False])), noise)
    # d(1/‖ε‖)/dε = −ε / ‖ε‖³
    torch.testing.assert_close(gradient, torch.tensor([[-3.0, -4.0], [0.0, 0.0]]) / 125)


def test_smaller_noise_costs_more() -> None:
    noise = torch.randn(4, 3)
    assert float(inverse_norm(noise / 10)) == pytest.approx(10 * float(inverse_norm(noise)), rel=1e-5)


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


def test_a_sample_with_dead_features_alone_is_at_no_distance() -> None:
    assert float(mean_log_ratio_squared(torch.zeros(2, 3), torch.ones(3))) == 0
