from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, batches, slow_network, slow_nt_xent
from torch import Tensor, nn

from pinoise.methods import CLAE, nt_xent

UNIT = torch.tensor([0.5, 0.0, 1.0, 2.0], dtype=torch.float64)


class Recorder(nn.Module):
    """An encoder that remembers what passed it."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach().clone())
        features: Tensor = self.encoder(x)
        return features


def slow_adversary(loss: Callable[[np.ndarray], float], x: np.ndarray, strength: float, unit: np.ndarray) -> np.ndarray:
    """Step along the sign of every partial derivative, each found by moving one entry to both sides."""
    result = x.copy()
    for index in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[index] += 1e-6
        down[index] -= 1e-6
        result[index] += strength * unit[index[1]] * np.sign(loss(up) - loss(down))
    return result


@pytest.mark.parametrize(("views", "against"), [(1, "itself"), (2, "itself"), (2, "partner")])
def test_agrees_with_one_derivative_at_a_time(
    views: int,
    against: Any,
    encoder: nn.Module,
    head: nn.Module,
    pair: Pair,
) -> None:
    represent, project = slow_network(encoder), slow_network(head)

    def z(x: np.ndarray) -> np.ndarray:
        return np.array(project(represent(x)))

    first, second = pair[0].numpy(), pair[views - 1].numpy()
    other = second if against == "partner" else first
    adversary = slow_adversary(lambda x: sum(slow_nt_xent(z(x), z(other), 0.4)), first, 0.1, UNIT.numpy())
    expected = np.array(slow_nt_xent(z(first), z(second), 0.4)) + 0.6 * np.array(
        slow_nt_xent(z(first), z(adversary), 0.4)
    )
    method = CLAE(encoder, head, feature_scale=UNIT, strength=0.1, weight=0.6, temperature=0.4, against=against)
    np.testing.assert_allclose(method(batches(*pair[:views])).detach().numpy(), expected, atol=1e-5)


def recorded_adversary(
    encoder: nn.Module, head: nn.Module, *views: Tensor, strength: float, against: Any = "itself"
) -> Tensor:
    recorder = Recorder(encoder)
    CLAE(recorder, head, feature_scale=UNIT, strength=strength, against=against)(batches(*views))
    return recorder.seen[-1][-len(views[0]) :]


def test_guessing_has_the_loss_of_a_head_that_forgets_everything(encoder: nn.Module, head: nn.Module) -> None:
    last = head[-1]  # type: ignore[index]
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.ones_(last.bias)
    method = CLAE(encoder, head, feature_scale=UNIT, weight=0.6)
    losses = method(batches(*torch.randn(2, 9, 4, dtype=torch.float64)))
    assert losses.tolist() == pytest.approx([method.guessing_loss(9)] * 9)


def normalised_encoder() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 5)).double()


def test_adversarial_examples_leave_no_trace_in_batch_statistics(head: nn.Module, pair: Pair) -> None:
    network = normalised_encoder()
    recorder = Recorder(network)
    CLAE(recorder, head, feature_scale=UNIT)(batches(*pair))
    norm = network[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.state_dict()["num_batches_tracked"] == 1
    passed = network[0](torch.cat(pair))
    torch.testing.assert_close(norm.running_mean, 0.1 * passed.mean(dim=0))
    torch.testing.assert_close(norm.running_var, 0.9 + 0.1 * passed.var(dim=0))
    assert norm.track_running_stats


def test_adversarial_examples_are_normalised_by_their_own_batch(head: nn.Module, pair: Pair) -> None:
    network = normalised_encoder()
    adversary = recorded_adversary(network, head, *pair, strength=0.1)
    z, partner = head(network(torch.cat(pair))).chunk(2)
    expected = nt_xent(z, partner) + nt_xent(z, head(network(adversary)))
    found = CLAE(network, head, feature_scale=UNIT, strength=0.1)(batches(*pair))
    torch.testing.assert_close(found, expected)


def test_the_search_for_the_adversary_uses_the_statistics_of_its_batch(head: nn.Module, pair: Pair) -> None:
    network = normalised_encoder()
    network[1].state_dict()["running_mean"].fill_(3.0)
    x = pair[0].clone().requires_grad_()
    z = copy.deepcopy(head)(copy.deepcopy(network)(torch.cat([x, pair[0]])))
    (gradient,) = torch.autograd.grad(nt_xent(*z.chunk(2)).sum(), x)
    found = recorded_adversary(network, head, *pair, strength=0.1) - pair[0]
    torch.testing.assert_close(found, 0.1 * UNIT * gradient.sign())


def test_noise_in_the_first_view_learns_through_the_adversarial_example(
    encoder: nn.Module, head: nn.Module, pair: Pair
) -> None:
    noise = torch.zeros_like(pair[0]).requires_grad_()
    method = CLAE(encoder, head, feature_scale=UNIT, strength=1.0, weight=1.0)
    whole, clean = (
        torch.autograd.grad(CLAE.forward(m, batches(pair[0] + noise, pair[1])).sum(), noise)[0]
        for m in (method, CLAE(encoder, head, feature_scale=UNIT, weight=0.0))
    )
    z, partner = (head(encoder(x)) for x in (pair[0] + noise, pair[1]))
    torch.testing.assert_close(clean, torch.autograd.grad(nt_xent(z, partner).sum(), noise)[0])
    adversary = recorded_adversary(encoder, head, *pair, strength=1.0).detach() - pair[0]
    term = nt_xent(head(encoder(pair[0] + noise)), head(encoder(pair[0] + noise + adversary))).sum()
    torch.testing.assert_close(whole - clean, torch.autograd.grad(term, noise)[0])
