from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.methods.problems import Pair, SlowCosine, batches
from torch import nn

from pinoise.methods import SimSiam, negative_cosine


def test_agrees_with_one_sample_at_a_time(slow_cosine: SlowCosine) -> None:
    prediction, projection = torch.randn(2, 9, 6)
    expected = [-slow_cosine(p, z) for p, z in zip(prediction.numpy(), projection.numpy(), strict=True)]
    np.testing.assert_allclose(negative_cosine(prediction, projection).numpy(), expected, atol=1e-5)


def test_the_method_averages_both_directions(
    encoder: nn.Module,
    head: nn.Module,
    predictor: nn.Module,
    pair: Pair,
    slow_cosine: SlowCosine,
    slow_network: Callable[[nn.Module], Any],
) -> None:
    z = [slow_network(head)(slow_network(encoder)(x.numpy())) for x in pair]
    p = [slow_network(predictor)(projection) for projection in z]
    expected = [-(slow_cosine(p[0][i], z[1][i]) + slow_cosine(p[1][i], z[0][i])) / 2 for i in range(6)]
    losses = SimSiam(encoder, head, predictor)(batches(*pair))
    np.testing.assert_allclose(losses.detach().numpy(), expected, atol=1e-5)


def test_the_encoder_learns_through_the_prediction_alone(
    encoder: nn.Module, head: nn.Module, predictor: nn.Module, pair: Pair
) -> None:
    weights = [*encoder.parameters(), *head.parameters()]
    found = torch.autograd.grad(SimSiam(encoder, head, predictor)(batches(*pair)).sum(), weights)
    z = [head(encoder(x)) for x in pair]
    fixed = [projection.detach() for projection in z]
    loss = negative_cosine(predictor(z[0]), fixed[1]) + negative_cosine(predictor(z[1]), fixed[0])
    for gradient, expected in zip(found, torch.autograd.grad(loss.sum() / 2, weights), strict=True):
        torch.testing.assert_close(gradient, expected)
