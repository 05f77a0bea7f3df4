from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from pinoise.methods import Momentum, cosine_momentum, ema_update


def test_momentum_rises_from_its_base_to_one_along_half_a_cosine() -> None:
    values = [cosine_momentum(step, 100, 0.996) for step in range(101)]
    assert values[0] == pytest.approx(0.996)
    assert values[100] == 1.0
    assert values == sorted(values)
    assert values[25] == pytest.approx(1 - 0.004 * (math.cos(math.pi / 4) + 1) / 2)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.99, 1.0])
def test_every_parameter_moves_by_the_average_and_statistics_stay(momentum: float) -> None:
    target, source = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)) for _ in range(2))
    source(torch.randn(8, 3))
    target(torch.randn(8, 3))
    old = {name: value.clone() for name, value in target.state_dict().items()}
    kept = {name: value.clone() for name, value in source.state_dict().items()}
    ema_update(target, source, momentum)
    parameters = {name for name, _ in target.named_parameters()}
    for name, value in target.state_dict().items():
        mixed = momentum * old[name] + (1 - momentum) * kept[name] if name in parameters else old[name]
        torch.testing.assert_close(value, mixed)
    assert all(torch.equal(value, kept[name]) for name, value in source.state_dict().items())


class Counter(nn.Module):
    """A network with buffers of its own around batch normalisation."""

    calls: torch.Tensor
    passing: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("passing", torch.zeros(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.passing = x.mean(dim=0)
        return torch.as_tensor(self.norm(x))


def test_buffers_that_are_not_statistics_are_copied() -> None:
    target, source = Counter(), Counter()
    for _ in range(3):
        source(torch.randn(4, 2))
    ema_update(nn.Sequential(target), nn.Sequential(source), 0.9)
    assert int(target.calls) == 3
    assert torch.equal(target.passing, source.passing)
    assert torch.equal(target.norm.state_dict()["running_mean"], torch.zeros(2))
    assert target.norm.state_dict()["num_batches_tracked"] == 0
    source(torch.randn(4, 2))
    assert int(target.calls) == 3


def test_the_copy_is_frozen_and_its_own() -> None:
    layer = nn.Linear(3, 2)
    copied = Momentum(layer)
    x = torch.randn(4, 3, requires_grad=True)
    before = copied(x)
    assert not before.requires_grad
    assert not any(parameter.requires_grad for parameter in copied.parameters())
    assert all(parameter.requires_grad for parameter in layer.parameters())
    nn.init.zeros_(layer.weight)
    assert torch.equal(copied(x), before)


def test_the_copy_runs_in_the_mode_of_the_method_around_it() -> None:
    whole = nn.Sequential(Momentum(nn.BatchNorm1d(2)))
    x = torch.randn(16, 2) + 5
    assert float(whole.train()(x).mean().abs()) < 1e-5
    assert float(whole.eval()(x).mean()) > 1
