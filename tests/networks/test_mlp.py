from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from pinoise.errors import UserError
from pinoise.networks import MLPEncoder


def slow_network(network: nn.Module, x: np.ndarray) -> np.ndarray:
    """Fully connected layers with ReLU between them, one sample and one unit at a time."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    rows = []
    for sample in x:
        h = [float(value) for value in sample.ravel()]
        for number, layer in enumerate(layers):
            weight, bias = layer.weight.tolist(), layer.bias.tolist()
            h = [sum(w * v for w, v in zip(row, h, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
            if number < len(layers) - 1:
                h = [max(value, 0.0) for value in h]
        rows.append(h)
    return np.array(rows)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 2)])
def test_encoder_agrees_with_one_unit_at_a_time_on_every_rank(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    encoder = MLPEncoder(shape, hidden=7, out_features=4)
    x = torch.randn(3, *shape)
    np.testing.assert_allclose(encoder(x).detach().numpy(), slow_network(encoder, x.numpy()), atol=1e-5)


def test_defaults_are_the_papers_sizes() -> None:
    encoder = MLPEncoder((561,))
    layers = [layer for layer in encoder.modules() if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in layers] == [(561, 1024), (1024, 1024), (1024, 256)]
    assert encoder.out_features == 256


@pytest.mark.parametrize(("hidden", "out_features", "wrong"), [(0, 4, "hidden"), (8, -1, "out_features")])
def test_a_width_below_one_is_refused(hidden: int, out_features: int, wrong: str) -> None:
    value = {"hidden": hidden, "out_features": out_features}[wrong]
    with pytest.raises(UserError, match=rf"{wrong} of the encoder is {value}: it must be from 1 to 65536"):
        MLPEncoder((5,), hidden=hidden, out_features=out_features)
