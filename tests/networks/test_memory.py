from __future__ import annotations

import torch
from torch import nn

from pinoise.networks.memory import counting_saved


def test_every_piece_of_memory_counts_once_and_weights_do_not() -> None:
    layer, x = nn.Linear(30, 20), torch.randn(50, 30)
    with counting_saved(layer.parameters()) as saved:
        h = layer(x)
        (h.exp() + h[:25].sum()).sum()
    assert saved.peak == 4 * (50 * 30 + 50 * 20)  # x and exp(h), which its own derivative needs
    with counting_saved() as with_weights:
        layer(x).exp().sum()
    assert with_weights.peak == saved.peak  # the first layer's weight is needed only for the gradient of x


def test_memory_is_given_back_with_the_graph() -> None:
    x = torch.randn(50, 30, requires_grad=True)
    with counting_saved() as saved:
        torch.autograd.grad(x.exp().sum(), x)
        first = saved.now
        torch.autograd.grad(x.exp().sin().exp().sum(), x)
    assert first == saved.now == 0
    assert saved.peak == 2 * 4 * 50 * 30  # of the larger graph, not of both


def test_gradients_stay_the_same() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(5, 3)
    (expected,) = torch.autograd.grad(layer(x).tanh().sum(), layer.weight)
    with counting_saved(layer.parameters()):
        (found,) = torch.autograd.grad(layer(x).tanh().sum(), layer.weight)
    assert torch.equal(found, expected)
