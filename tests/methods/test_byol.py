from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, batches, slow_cosine, slow_network
from torch import nn

from pinoise.errors import UserError
from pinoise.methods import BYOL, byol_loss
from pinoise.networks import BatchNormHead, PredictionHead


def test_agrees_with_one_sample_at_a_time() -> None:
    prediction, target = torch.randn(2, 9, 6)
    expected = [2 - 2 * slow_cosine(p, z) for p, z in zip(prediction.numpy(), target.numpy(), strict=True)]
    np.testing.assert_allclose(byol_loss(prediction, target).numpy(), expected, atol=1e-5)


def test_the_method_sums_both_directions_between_online_and_target_network(
    encoder: nn.Module,
    head: nn.Module,
    predictor: nn.Module,
    pair: Pair,
) -> None:
    method = BYOL(encoder, head, predictor)
    for parameter in method.target_network.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    network = method.target_network.network
    p = [slow_network(predictor)(slow_network(head)(slow_network(encoder)(x.numpy()))) for x in pair]
    z = [slow_network(network[1])(slow_network(network[0])(x.numpy())) for x in pair]
    expected = [4 - 2 * slow_cosine(p[0][i], z[1][i]) - 2 * slow_cosine(p[1][i], z[0][i]) for i in range(6)]
    np.testing.assert_allclose(method(batches(*pair)).detach().numpy(), expected, atol=1e-5)


def test_what_the_target_says_in_evaluation_is_near_to_what_it_said_in_training() -> None:
    encoder = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))
    method = BYOL(encoder, BatchNormHead(5, hidden=8, out_features=6), PredictionHead(6, hidden=8), momentum=0.99)
    optimizer = torch.optim.SGD([p for p in method.parameters() if p.requires_grad], lr=0.1)
    x = 3 + torch.randn(32, 4)
    for step in range(150):
        optimizer.zero_grad()
        method(batches(x[:16], x[16:])).mean().backward()
        optimizer.step()
        method.after_step(step, 150)
    trained, evaluated = method.target_network.train()(x), method.target_network.eval()(x)
    assert float(nn.functional.cosine_similarity(trained, evaluated).min()) > 0.95


def test_a_predictor_of_another_width_is_refused(encoder: nn.Module, head: nn.Module) -> None:
    with pytest.raises(UserError, match=r"the predictor gives 4 features and the head 3: both must give as many"):
        BYOL(encoder, head, nn.Linear(3, 4))


def test_a_momentum_outside_its_range_is_refused(encoder: nn.Module, head: nn.Module, predictor: nn.Module) -> None:
    with pytest.raises(UserError, match=r"momentum is -0.1: it must be from 0 to 1"):
        BYOL(encoder, head, predictor, momentum=-0.1)
