from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinoise.errors import UserError
from pinoise.networks import UNet


def slow_convolutions(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Convolution, normalisation of each sample's groups and ReLU, once or twice; groups found sample by sample."""
    for conv in (0, 3)[: sum(key.startswith(f"{name}.") for key in state) // 3]:
        x = F.conv2d(x, state[f"{name}.{conv}.weight"], padding=1)
        channels = x.shape[1]
        groups = {4: 1, 8: 2, 16: 4, 32: 8}[channels]
        samples = []
        for sample in x:
            parts = [(part - part.mean()) / (part.var(correction=0) + 1e-5).sqrt() for part in sample.chunk(groups)]
            weight, bias = state[f"{name}.{conv + 1}.weight"], state[f"{name}.{conv + 1}.bias"]
            samples.append(torch.cat(parts) * weight[:, None, None] + bias[:, None, None])
        x = torch.stack(samples).clamp_min(0)
    return x


def nearest(x: Tensor, size: torch.Size) -> Tensor:
    """Every pixel of the larger map is the pixel of the smaller one that lies under it."""
    rows = torch.tensor([row * x.shape[2] // size[0] for row in range(size[0])])
    columns = torch.tensor([column * x.shape[3] // size[1] for column in range(size[1])])
    return x[:, :, rows][:, :, :, columns]


def slow_unet(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """The letter U of depth 2, arm by arm."""
    full = slow_convolutions(state, "down.0", x)
    half = slow_convolutions(state, "down.1", F.max_pool2d(full, 2, ceil_mode=True))
    quarter = slow_convolutions(state, "down.2", F.max_pool2d(half, 2, ceil_mode=True))
    raised = slow_convolutions(state, "lower.0", nearest(quarter, half.shape[2:]))
    half = slow_convolutions(state, "up.0", torch.cat([half, raised], dim=1))
    raised = slow_convolutions(state, "lower.1", nearest(half, full.shape[2:]))
    full = slow_convolutions(state, "up.1", torch.cat([full, raised], dim=1))
    return F.conv2d(full, state["out.weight"], state["out.bias"])


@pytest.mark.parametrize("up_convolution", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (9, 7)])
def test_a_forward_pass_agrees_with_the_letter_u_written_out(size: tuple[int, int], up_convolution: bool) -> None:
    network = UNet(3, 5, width=8, depth=2, up_convolution=up_convolution).double()
    state = {name: torch.randn_like(value) for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    x = torch.randn(2, 3, *size, dtype=torch.float64)
    torch.testing.assert_close(network(x), slow_unet(state, x))


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (17, 5), (3, 31), (1, 1)])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_maps_have_the_size_of_the_image_whatever_it_is(size: tuple[int, int], depth: int) -> None:
    assert UNet(2, 4, width=4, depth=depth, up_convolution=False)(torch.randn(1, 2, *size)).shape == (1, 4, *size)


def test_a_sample_does_not_depend_on_its_batch_mates() -> None:
    network = UNet(3, 2, width=4, depth=3, up_convolution=False).double()
    x = torch.randn(4, 3, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(network(x)[1:2], network(x[1:2]))


def test_mistakes_are_named() -> None:
    sizes: dict[str, Any] = {"width": 4, "depth": 3, "up_convolution": False}
    with pytest.raises(UserError, match=r"images of 1 channel, .* shape \(2, 3, 8, 8\)"):
        UNet(1, 2, **sizes)(torch.zeros(2, 3, 8, 8))
    with pytest.raises(UserError, match=r"width of a U-Net is 0: it must be from 1 to 65536"):
        UNet(1, 2, **(sizes | {"width": 0}))
    for depth in (-1, 9):
        with pytest.raises(UserError, match=rf"depth of a U-Net is {depth}: it must be from 0 to 8"):
            UNet(1, 2, **(sizes | {"depth": depth}))
    with pytest.raises(UserError, match=r"out_channels of a U-Net is 0"):
        UNet(1, 0, **sizes)
