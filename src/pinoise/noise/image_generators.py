"""Generators of noise for images: networks from (m, C, H, W) to raw parameters (m, outputs, C, H, W)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Size
from pinoise.errors import UserError
from pinoise.modes import without_trace
from pinoise.networks.mlp import HIDDEN, Linear, check_sizes
from pinoise.networks.resnet import STEM, WIDTH, Depth, ResNet, Stem, image_shape
from pinoise.networks.unet import UNET_DEPTH, UNET_WIDTH, Halvings, UNet

# The factor on torch's initial weights in the last layer of a network on normalised maps. Raw parameters then start
# below about 0.1, and σ starts near its initial value.
SMALL_START = 0.1


class ResNet18Generator(nn.Module):
    """The paper's generator for images: pooled features of a ResNet18, then for each output FC → ReLU → FC to C·H·W.

    As in the paper, it uses batch normalisation. In training, a sample's noise depends slightly on the whole batch.

    Args:
        shape: the shape of one image, (C, H, W).
        outputs: 1 (scale), or 2 (scale, mean).
        width: channels of the first stage.
        hidden: width of the heads' hidden layers.
        stem: as of the encoder; the paper's cost tables imply ``"cifar"`` at every size.

    >>> generator = ResNet18Generator((3, 8, 8), outputs=2, width=4, hidden=6)
    >>> generator(torch.zeros(5, 3, 8, 8)).shape
    torch.Size([5, 2, 3, 8, 8])
    """

    for_images: ClassVar[bool] = True
    depth: ClassVar[Depth] = 18

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: int,
        *,
        width: Size = WIDTH,
        hidden: Size = HIDDEN,
        stem: Stem = STEM,
    ) -> None:
        super().__init__()
        self.shape = image_shape(shape, owner=f"generator 'resnet{self.depth}'")
        check_sizes(f"generator 'resnet{self.depth}'", hidden=hidden)
        self.trunk = ResNet(self.shape, depth=self.depth, width=width, stem=stem)
        self.heads = nn.ModuleList(
            nn.Sequential(
                Linear(self.trunk.out_features, hidden),
                nn.ReLU(),
                _small(Linear(hidden, math.prod(self.shape))),
            )
            for _ in range(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, C, H, W)."""
        features = self.trunk(x)  # (m, out_features)
        return torch.stack([head(features) for head in self.heads], dim=1).reshape(x.shape[0], -1, *self.shape)


class ResNet50Generator(ResNet18Generator):
    """The generator on a ResNet of depth 50."""

    depth = 50


class UNetGenerator(nn.Module):
    """A U-Net whose output maps are the raw parameters. The noise of a sample depends on that sample alone.

    Args:
        shape: the shape of one image, (C, H, W).
        outputs: 1 (scale), or 2 (scale, mean).
        width: channels at full resolution.
        depth: the number of halvings.
        up_convolution: whether a convolution halves the channels on the way up. With this, a width of 64 and a depth of
            4 it costs what the paper reports.

    >>> UNetGenerator((3, 9, 7), outputs=2, width=4)(torch.zeros(5, 3, 9, 7)).shape
    torch.Size([5, 2, 3, 9, 7])
    """

    for_images: ClassVar[bool] = True

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: int,
        *,
        width: Size = UNET_WIDTH,
        depth: Halvings = UNET_DEPTH,
        up_convolution: bool = False,
    ) -> None:
        super().__init__()
        self.shape = image_shape(shape, owner="generator 'unet'")
        channels = self.shape[0]
        self.network = UNet(channels, outputs * channels, width=width, depth=depth, up_convolution=up_convolution)
        _small(self.network.out)

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, C, H, W)."""
        maps: Tensor = self.network(x)  # (m, outputs * C, H, W)
        return maps.reshape(x.shape[0], -1, *self.shape)


class SharedMapGenerator(nn.Module):
    """A light decoder on the encoder's feature maps of x. The noise of images then costs almost nothing.

    The encoder runs without gradient and in evaluation mode, so that σ(x) depends on x alone and batch normalisation
    keeps its statistics. The generator refers to the encoder but does not own it, so ``parameters()`` and
    ``state_dict()`` leave the encoder out.

    Args:
        shape: the shape of one image, (C, H, W).
        outputs: 1 (scale), or 2 (scale, mean).
        encoder: a module with ``maps(x)`` of shape (m, map_channels, h, w) and the integer attribute ``map_channels``.

    >>> encoder = ResNet((3, 8, 8), depth=18, width=4)
    >>> SharedMapGenerator((3, 8, 8), outputs=2, encoder=encoder)(torch.zeros(5, 3, 8, 8)).shape
    torch.Size([5, 2, 3, 8, 8])
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, encoder: nn.Module) -> None:
        super().__init__()
        self.shape = image_shape(shape, owner="generator 'shared' on feature maps")
        map_channels = getattr(encoder, "map_channels", None)
        if not isinstance(map_channels, int) or not hasattr(encoder, "maps"):
            raise UserError(
                f"generator 'shared' reads the feature maps of an image encoder, but {type(encoder).__name__} has "
                f"map_channels {map_channels!r}: give it a method maps(x) and the integer attribute map_channels."
            )
        self._encoder = (encoder,)  # a tuple hides it from nn.Module's registration
        # The width follows the encoder's, to stay cheap: 64, 32 and 16 channels for a ResNet18 of full width.
        first = min(64, max(4, map_channels // 4))
        second, third = max(min(16, first), first // 2), max(min(16, first), first // 4)
        self.reduce = nn.Conv2d(map_channels, first, 1)
        self.refine = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1) for before, after in ((first, second), (second, third))
        )
        self.out = nn.Conv2d(third, outputs * self.shape[0], 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, C, H, W)."""
        encoder = self._encoder[0]
        with without_trace(encoder, x):
            maps = encoder.maps(x)  # type: ignore[operator]  # (m, map_channels, h, w)
        h = F.relu(self.reduce(maps))
        for conv in self.refine:
            h = F.relu(conv(F.interpolate(h, scale_factor=2, mode="nearest")))
        if h.shape[2:] != self.shape[1:]:
            h = F.interpolate(h, size=self.shape[1:], mode="bilinear", align_corners=False)
        raw: Tensor = self.out(h)  # (m, outputs * C, H, W)
        return raw.reshape(x.shape[0], -1, *self.shape)


def _small(layer: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(SMALL_START)
    return layer
