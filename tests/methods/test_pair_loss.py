"""A method from a user's own loss on the projections of two views."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import PairLoss, SimCLR, nt_xent
from pinoise.noise import PiNoise
from pinoise.views import Batch

Pair = tuple[Tensor, Tensor]


def batches(*views: Tensor) -> list[Batch]:
    return [Batch(x, torch.arange(len(x))) for x in views]


def distance(first: Tensor, second: Tensor) -> Tensor:
    return (first - second).square().sum(dim=1)


def test_the_loss_is_given_the_projections_of_the_views_in_their_order(
    encoder: nn.Module, head: nn.Module, pair: Pair
) -> None:
    seen: list[Tensor] = []

    def first_entry(first: Tensor, second: Tensor) -> Tensor:
        seen.extend([first, second])
        return first[:, 0] - 2 * second[:, 1]

    losses = PairLoss(encoder, head, first_entry)(batches(*pair))
    projections = [head(encoder(x)) for x in pair]
    for found, expected in zip(seen, projections, strict=True):
        torch.testing.assert_close(found, expected)
    for i in range(6):
        assert float(losses[i].detach()) == pytest.approx(
            float(projections[0][i, 0].detach()) - 2 * float(projections[1][i, 1].detach())
        )


def test_with_nt_xent_it_is_simclr(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    torch.testing.assert_close(PairLoss(encoder, head, nt_xent)(batches(*pair)), SimCLR(encoder, head)(batches(*pair)))


def test_views_pass_the_encoder_together_and_known_features_do_not(
    encoder: nn.Module, head: nn.Module, pair: Pair
) -> None:
    sizes: list[int] = []
    method = PairLoss(encoder, head, distance)
    features = encoder(pair[0])
    encoder.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    expected = method(batches(*pair))
    views = batches(*pair)
    views[0] = views[0]._replace(features=features)
    torch.testing.assert_close(method(views), expected)
    assert sizes == [12, 6]


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
