"""A method from a user's own loss on the projections of two views."""

from __future__ import annotations

import pytest
import torch
from tests.methods.problems import Pair, batches
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import PairLoss, SimCLR, nt_xent
from pinoise.noise import PiNoise


def distance(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).square().sum(dim=1)


def test_with_nt_xent_it_is_simclr(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    torch.testing.assert_close(PairLoss(encoder, head, nt_xent)(batches(*pair)), SimCLR(encoder, head)(batches(*pair)))


@pytest.mark.parametrize("noisy_side", [0, 1])
def test_encoder_head_and_noise_in_either_view_learn(
    noisy_side: int, encoder: nn.Module, head: nn.Module, pair: Pair
) -> None:
    noise = PiNoise(4, hidden=16).double()
    views = [*pair]
    views[noisy_side] = noise(views[noisy_side])
    method = PairLoss(encoder, head, distance)
    parameters = [*method.parameters(), *noise.parameters()]
    assert len(list(method.parameters())) == len([*encoder.parameters(), *head.parameters()])
    # The last bias of the head is no part of a difference.
    gradients = torch.autograd.grad((method(batches(*views)) + head(encoder(pair[0]))[:, 0]).sum(), parameters)
    assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_views_is_refused(count: int, encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    with pytest.raises(UserError, match=rf"compares two views and was given {count}: choose another pairing"):
        PairLoss(encoder, head, distance)(batches(*[pair[0]] * count))
