"""Generators of noise for images: networks from (m, C, H, W) to raw parameters (m, outputs, C, H, W)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Size
from pinoise.errors import UserError
from pinoise.modes import without_trace
from pinoise.networks.mlp import HIDDEN, check_sizes
from pinoise.networks.resnet import STEM, WIDTH, ResNet, ResNet18, ResNet50, Stem, image_shape
from pinoise.networks.unet import UNET_DEPTH, UNET_WIDTH, Halvings, UNet
from pinoise.noise.generators import HeadedGenerator, SharedGenerator

# The factor on torch's initial weights in the last layer of a network on normalised maps. Raw parameters then start
# below about 0.1, and σ starts near its initial value.
SMALL_START = 0.1


class ResNet18Generator(HeadedGenerator):
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
    network: ClassVar[type[ResNet]] = ResNet18
    trunk: ResNet

    def __init__(
        self, shape: tuple[int, ...], outputs: int, *, width: Size = WIDTH, hidden: Size = HIDDEN, stem: Stem = STEM
    ) -> None:
        owner = f"generator 'resnet{self.network.depth}'"
        check_sizes(owner, hidden=hidden)
        trunk = self.network(image_shape(shape, owner=owner), width=width, stem=stem)
        super().__init__(shape, outputs, trunk, trunk.out_features, hidden=hidden)
        for head in self.heads:
            _small(head.get_submodule("2"))


class ResNet50Generator(ResNet18Generator):
    """The generator on a ResNet of depth 50."""

    network = ResNet50


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

    >>> encoder = ResNet18((3, 8, 8), width=4)
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


def shared_generator(shape: tuple[int, ...], outputs: int, encoder: nn.Module | None) -> nn.Module:
    """Return a light head on the encoder: for images on its feature maps, if it has ``maps``, else on its features.

    >>> type(shared_generator((5,), 1, nn.Linear(5, 4))).__name__
    'SharedGenerator'
    """
    if encoder is not None and len(shape) == 3 and hasattr(encoder, "maps"):
        return SharedMapGenerator(shape, outputs, encoder)
    features = getattr(encoder, "out_features", None)
    if encoder is None or not isinstance(features, int):
        found = "none" if encoder is None else f"{type(encoder).__name__}, whose out_features is {features!r}"
        raise UserError(
            f"generator 'shared' reads the features of an encoder and was given {found}: "
            "pass encoder=, a module that states its output size as the integer attribute out_features."
        )
    return SharedGenerator(shape, outputs, encoder, features)


@torch.no_grad()
def _small(layer: nn.Module) -> None:
    for parameter in layer.parameters():
        parameter.mul_(SMALL_START)
