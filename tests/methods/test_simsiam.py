from __future__ import annotations

import numpy as np
import torch
from tests.methods.problems import Pair, batches, slow_cosine, slow_network
from torch import nn

from pinoise.methods import SimSiam, negative_cosine


def test_agrees_with_one_sample_at_a_time() -> None:
    prediction, projection = torch.randn(2, 9, 6)
    expected = [-slow_cosine(p, z) for p, z in zip(prediction.numpy(), projection.numpy(), strict=True)]
    np.testing.assert_allclose(negative_cosine(prediction, projection).numpy(), expected, atol=1e-5)


def test_the_method_averages_both_directions(
    encoder: nn.Module,
    head: nn.Module,
    predictor: nn.Module,
    pair: Pair,
) -> None:
    z = [slow_network(head)(slow_network(encoder)(x.numpy())) for x in pair]
    p = [slow_network(predictor)(projection) for projection in z]
    expected = [-(slow_cosine(p[0][i], z[1][i]) + slow_cosine(p[1][i], z[0][i])) / 2 for i in range(6)]
    losses = SimSiam(encoder, head, predictor)(batches(*pair))
    np.testing.assert_allclose(losses.detach().numpy(), expected, atol=1e-5)
