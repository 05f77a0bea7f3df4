from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, batches, slow_network, slow_nt_xent
from torch import nn

from pinoise.methods import SimCL
from pinoise.noise import PiNoise


def slow_perturb(representation: np.ndarray, draw: np.ndarray, strength: float) -> np.ndarray:
    rows = []
    for h, n in zip(representation, draw, strict=True):
        length = math.sqrt(sum(float(value) ** 2 for value in n))
        rows.append([a + strength * b / length for a, b in zip(h, n, strict=True)])
    return np.array(rows)


@pytest.mark.parametrize("views", [1, 2])
def test_agrees_with_one_sample_at_a_time(
    views: int,
    encoder: nn.Module,
    head: nn.Module,
    pair: Pair,
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


def test_input_noise_learns_through_the_perturbation(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    noise = PiNoise(4, hidden=16).double()
    losses = SimCL(encoder, head)(batches(pair[0], noise(pair[0])))
    gradients = torch.autograd.grad(losses.sum(), list(noise.parameters()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)
