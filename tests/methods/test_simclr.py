from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import Method, SimCLR, nt_xent
from pinoise.noise import PiNoise
from pinoise.views import Batch

SlowLoss = Callable[[np.ndarray, np.ndarray, float], list[float]]
Pair = tuple[Tensor, Tensor]


def batches(*views: Tensor) -> list[Batch]:
    return [Batch(x, torch.arange(len(x))) for x in views]


class Alike(nn.Module):
    """A head that has forgotten everything."""

    def forward(self, h: Tensor) -> Tensor:
        return torch.ones_like(h)


@pytest.mark.parametrize("m", [1, 2, 5, 16])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_agrees_with_one_pair_at_a_time(m: int, temperature: float, slow_nt_xent: SlowLoss) -> None:
    torch.manual_seed(m)
    first, second = torch.randn(2, m, 7)
    losses = nt_xent(first, second, temperature=temperature)
    np.testing.assert_allclose(losses.numpy(), slow_nt_xent(first.numpy(), second.numpy(), temperature), atol=1e-5)


def test_the_default_temperature_is_a_half() -> None:
    first, second = torch.randn(2, 5, 7)
    assert torch.equal(nt_xent(first, second), nt_xent(first, second, temperature=0.5))


def test_gradient_agrees_with_finite_differences(pair: Pair) -> None:
    first, second = (view.clone().requires_grad_() for view in pair)
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, temperature=0.5), (first, second))


def test_swapping_the_views_changes_nothing(pair: Pair) -> None:
    torch.testing.assert_close(nt_xent(pair[1], pair[0]), nt_xent(*pair))


def test_the_length_of_a_projection_does_not_matter(pair: Pair) -> None:
    lengths = torch.linspace(0.01, 100, 12, dtype=torch.float64)[:, None]
    torch.testing.assert_close(nt_xent(lengths[:6] * pair[0], lengths[6:] * pair[1]), nt_xent(*pair))


def test_permuting_the_samples_permutes_the_losses(pair: Pair) -> None:
    order = torch.tensor([3, 0, 5, 1, 2, 4])
    torch.testing.assert_close(nt_xent(pair[0][order], pair[1][order]), nt_xent(*pair)[order])


def test_rotating_all_projections_changes_nothing(pair: Pair) -> None:
    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64)).Q
    torch.testing.assert_close(nt_xent(pair[0] @ rotation, pair[1] @ rotation), nt_xent(*pair))


@pytest.mark.parametrize("temperature", [1e-4, 1e-2, 1e2, 1e6])
def test_extreme_temperatures_stay_finite(temperature: float) -> None:
    torch.manual_seed(0)
    first, second = torch.randn(8, 5, requires_grad=True), torch.randn(8, 5)
    losses = nt_xent(first, second, temperature=temperature)
    (gradient,) = torch.autograd.grad(losses.sum(), first)
    assert bool(losses.isfinite().all())
    assert bool(gradient.isfinite().all())


def test_a_high_temperature_makes_every_other_view_equally_likely() -> None:
    first, second = torch.randn(2, 8, 5)
    torch.testing.assert_close(nt_xent(first, second, temperature=1e6), torch.full((8,), math.log(15)))


def test_a_low_temperature_leaves_only_the_nearest_view() -> None:
    x = torch.eye(4)
    assert nt_xent(x, x, temperature=1e-3).tolist() == [0.0] * 4


def test_one_sample_has_no_negatives_and_no_loss() -> None:
    first, second = torch.randn(1, 5, requires_grad=True), torch.randn(1, 5)
    loss = nt_xent(first, second)
    (gradient,) = torch.autograd.grad(loss.sum(), first)
    assert loss.tolist() == pytest.approx([0.0], abs=1e-6)
    assert bool(gradient.isfinite().all())


def test_a_projection_of_zeros_stays_finite() -> None:
    losses = nt_xent(torch.zeros(3, 5), torch.randn(3, 5))
    assert bool(losses.isfinite().all())


def test_nearer_partners_lose_less(pair: Pair) -> None:
    far = pair[0] + 3 * (pair[1] - pair[0])
    assert float(nt_xent(pair[0], pair[0]).mean()) < float(nt_xent(*pair).mean()) < float(nt_xent(pair[0], far).mean())


def test_the_method_is_nt_xent_of_the_projections(
    encoder: nn.Module, head: nn.Module, pair: Pair, slow_nt_xent: SlowLoss, slow_network: Callable[[nn.Module], Any]
) -> None:
    method = SimCLR(encoder, head, temperature=0.4)
    represent, project = slow_network(encoder), slow_network(head)
    z = [project(represent(view.numpy())) for view in pair]
    np.testing.assert_allclose(method(batches(*pair)).detach().numpy(), slow_nt_xent(z[0], z[1], 0.4), atol=1e-5)


def test_the_embedding_is_the_heads_input(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    method = SimCLR(encoder, head)
    assert isinstance(method, Method)
    assert torch.equal(method.embed(pair[0]), encoder(pair[0]))


def test_both_views_pass_the_encoder_in_one_go(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    sizes: list[int] = []
    encoder.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    SimCLR(encoder, head)(batches(*pair))
    assert sizes == [12]


@pytest.mark.parametrize("m", [2, 7])
def test_guessing_has_the_loss_of_projections_that_are_all_equal(encoder: nn.Module, m: int) -> None:
    method = SimCLR(encoder, Alike())
    losses = method(batches(*torch.randn(2, m, 4, dtype=torch.float64)))
    assert losses.tolist() == pytest.approx([method.guessing_loss(m)] * m)


def test_a_method_without_a_known_loss_of_guessing_says_none(encoder: nn.Module) -> None:
    assert Method(encoder).guessing_loss(8) is None


@pytest.mark.parametrize("noisy_side", [0, 1])
def test_noise_in_either_view_learns(noisy_side: int, encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    noise = PiNoise(4, hidden=16).double()
    views = [pair[0], pair[1]]
    views[noisy_side] = noise(views[noisy_side])
    gradients = torch.autograd.grad(SimCLR(encoder, head)(batches(*views)).sum(), list(noise.parameters()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize("temperature", [0.0, -0.1, math.nan])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float) -> None:
    with pytest.raises(UserError, match=rf"temperature is {temperature}: it must be positive"):
        SimCLR(nn.Identity(), nn.Identity(), temperature=temperature)


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_views_is_refused(count: int) -> None:
    with pytest.raises(UserError, match=rf"'simclr' compares two views and was given {count}: choose another pairing"):
        SimCLR(nn.Identity(), nn.Identity())(batches(*[torch.randn(3, 2)] * count))
