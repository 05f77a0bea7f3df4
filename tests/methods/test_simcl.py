from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import SimCL
from pinoise.methods.simcl import perturb
from pinoise.noise import PiNoise
from pinoise.views import Batch

SlowLoss = Callable[[np.ndarray, np.ndarray, float], list[float]]
Pair = tuple[Tensor, Tensor]


def batches(*views: Tensor) -> list[Batch]:
    return [Batch(x, torch.arange(len(x))) for x in views]


def slow_perturb(representation: np.ndarray, draw: np.ndarray, strength: float) -> np.ndarray:
    rows = []
    for h, n in zip(representation, draw, strict=True):
        length = math.sqrt(sum(float(value) ** 2 for value in n))
        rows.append([a + strength * b / length for a, b in zip(h, n, strict=True)])
    return np.array(rows)


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_the_perturbation_is_as_long_as_asked_for(strength: float) -> None:
    torch.manual_seed(0)
    h, draw = torch.randn(2, 50, 7, dtype=torch.float64)
    moved = perturb(h, draw, strength=strength) - h
    torch.testing.assert_close(moved.norm(dim=1), torch.full((50,), strength, dtype=torch.float64))
    torch.testing.assert_close(moved / strength, draw / draw.norm(dim=1, keepdim=True))


@pytest.mark.parametrize("views", [1, 2])
def test_agrees_with_one_sample_at_a_time(
    views: int,
    encoder: nn.Module,
    head: nn.Module,
    pair: Pair,
    slow_nt_xent: SlowLoss,
    slow_network: Callable[[nn.Module], Any],
) -> None:
    method = SimCL(encoder, head, strength=0.7, temperature=0.4)
    torch.manual_seed(5)
    draw = torch.randn(12, 5, dtype=torch.float64).numpy()
    torch.manual_seed(5)
    losses = method(batches(*pair[:views])).detach().numpy()
    represent, project = slow_network(encoder), slow_network(head)
    h = [represent(view.numpy()) for view in (pair[0], pair[views - 1])]
    first, second = (project(slow_perturb(h[side], draw[6 * side : 6 * side + 6], 0.7)) for side in range(2))
    np.testing.assert_allclose(losses, slow_nt_xent(first, second, 0.4), atol=1e-5)


def test_one_view_is_encoded_once_and_still_gives_two_projections(encoder: nn.Module, head: nn.Module) -> None:
    sizes: list[int] = []
    for module in (encoder, head):
        module.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    losses = SimCL(encoder, head)(batches(torch.randn(6, 4, dtype=torch.float64)))
    assert losses.shape == (6,)
    assert sizes == [6, 12]
    assert bool((losses > 0).all())


def test_every_call_perturbs_anew(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    method = SimCL(encoder, head)
    assert not torch.equal(method(batches(pair[0])), method(batches(pair[0])))


def test_embedding_is_not_perturbed(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    assert torch.equal(SimCL(encoder, head).embed(pair[0]), encoder(pair[0]))


def test_input_noise_learns_through_the_perturbation(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    noise = PiNoise(4, hidden=16).double()
    losses = SimCL(encoder, head)(batches(pair[0], noise(pair[0])))
    gradients = torch.autograd.grad(losses.sum(), list(noise.parameters()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)


def test_three_views_are_refused(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    with pytest.raises(UserError, match=r"'simcl' compares two views and was given 3: choose another pairing"):
        SimCL(encoder, head)(batches(*pair, pair[0]))


def test_a_temperature_that_is_not_positive_is_refused(encoder: nn.Module, head: nn.Module) -> None:
    with pytest.raises(UserError, match=r"temperature is 0: it must be positive"):
        SimCL(encoder, head, temperature=0)
