from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.methods.problems import slow_network
from torch import nn

from pinoise.errors import UserError
from pinoise.networks import MLPEncoder


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 2)])
def test_encoder_agrees_with_one_unit_at_a_time_on_every_rank(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    encoder = MLPEncoder(shape, hidden=7, out_features=4)
    x = torch.randn(3, *shape)
    np.testing.assert_allclose(encoder(x).detach().numpy(), slow_network(encoder)(x.numpy()), atol=1e-5)


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
