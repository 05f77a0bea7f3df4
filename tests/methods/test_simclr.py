from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, batches, slow_network, slow_nt_xent
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import SimCLR, nt_xent


class Alike(nn.Module):
    """A head that has forgotten everything."""

    def forward(self, h: Tensor) -> Tensor:
        return torch.ones_like(h)


@pytest.mark.parametrize("m", [1, 2, 5, 16])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_agrees_with_one_pair_at_a_time(m: int, temperature: float) -> None:
    torch.manual_seed(m)
    first, second = torch.randn(2, m, 7)
    losses = nt_xent(first, second, temperature=temperature)
    np.testing.assert_allclose(losses.numpy(), slow_nt_xent(first.numpy(), second.numpy(), temperature), atol=1e-5)


def test_gradient_agrees_with_finite_differences(pair: Pair) -> None:
    first, second = (view.clone().requires_grad_() for view in pair)
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, temperature=0.5), (first, second))


@pytest.mark.parametrize("temperature", [1e-4, 1e-2, 1e2, 1e6])
def test_extreme_temperatures_stay_finite(temperature: float) -> None:
    torch.manual_seed(0)
    first, second = torch.randn(8, 5, requires_grad=True), torch.randn(8, 5)
    losses = nt_xent(first, second, temperature=temperature)
    (gradient,) = torch.autograd.grad(losses.sum(), first)
    assert bool(losses.isfinite().all())
    assert bool(gradient.isfinite().all())


def test_a_projection_of_zeros_stays_finite() -> None:
    losses = nt_xent(torch.zeros(3, 5), torch.randn(3, 5))
    assert bool(losses.isfinite().all())


def test_the_method_is_nt_xent_of_the_projections(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    method = SimCLR(encoder, head, temperature=0.4)
    represent, project = slow_network(encoder), slow_network(head)
    z = [project(represent(view.numpy())) for view in pair]
    np.testing.assert_allclose(method(batches(*pair)).detach().numpy(), slow_nt_xent(z[0], z[1], 0.4), atol=1e-5)


@pytest.mark.parametrize("m", [2, 7])
def test_guessing_has_the_loss_of_projections_that_are_all_equal(encoder: nn.Module, m: int) -> None:
    method = SimCLR(encoder, Alike())
    losses = method(batches(*torch.randn(2, m, 4, dtype=torch.float64)))
    assert losses.tolist() == pytest.approx([method.guessing_loss(m)] * m)


@pytest.mark.parametrize("temperature", [0.0, -0.1, math.nan])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float) -> None:
    with pytest.raises(UserError, match=rf"temperature is {temperature}: it must be positive"):
        SimCLR(nn.Identity(), nn.Identity(), temperature=temperature)
