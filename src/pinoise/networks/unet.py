"""A U-Net (Ronneberger et al., 2015): from an image to maps of the same size."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import within
from pinoise.networks.mlp import check_sizes
from pinoise.networks.resnet import check_images

UNET_WIDTH = 32  # channels at full resolution
UNET_DEPTH = 3
Halvings = Annotated[int, Interval(ge=0, le=8)]


def _groups(channels: int) -> int:
    """Return up to 8 groups of at least 4 channels, so that even a map of one pixel can be normalised."""
    return next((groups for groups in (8, 4, 2) if channels % (4 * groups) == 0), 1)


def _convolutions(*channels: int) -> nn.Sequential:
    """3×3 convolutions with group normalisation: a sample's maps do not depend on the rest of its batch."""
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.GroupNorm(_groups(after), after),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """From images of any size, odd sizes included, to maps of the same size.

    Args:
        in_channels: channels of the images.
        out_channels: channels of the maps.
        width: channels at full resolution; they double at every halving of the size.
        depth: the number of halvings.
        up_convolution: whether a 3×3 convolution halves the channels after every doubling of the size, before the
            skipped maps are joined, as implementations of the published network do. Without it the joined maps are
            wider, and there is one convolution less.

    >>> UNet(3, 5, width=4, depth=3, up_convolution=False)(torch.zeros(2, 3, 9, 7)).shape
    torch.Size([2, 5, 9, 7])
    """

    def __init__(self, in_channels: int, out_channels: int, *, width: int, depth: int, up_convolution: bool) -> None:
        super().__init__()
        check_sizes("a U-Net", in_channels=in_channels, out_channels=out_channels, width=width)
        within("depth of a U-Net", depth, Halvings)
        self.in_channels = in_channels
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            _convolutions(before, after, after) for before, after in zip([in_channels, *widths], widths, strict=False)
        )
        self.halve = nn.MaxPool2d(2, ceil_mode=True)  # a side of one pixel stays
        wide_to_narrow = [(wide, wide // 2) for wide in reversed(widths[1:])]
        self.lower = nn.ModuleList(
            _convolutions(wide, narrow) if up_convolution else nn.Identity() for wide, narrow in wide_to_narrow
        )
        self.up = nn.ModuleList(
            _convolutions(narrow + (narrow if up_convolution else wide), narrow, narrow)
            for wide, narrow in wide_to_narrow
        )
        self.out = nn.Conv2d(width, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return maps (m, out_channels, h, w) of images (m, in_channels, h, w)."""
        check_images(x, self.in_channels, owner="a U-Net")
        h = self.down[0](x)
        skipped = []
        for down in list(self.down)[1:]:
            skipped.append(h)
            h = down(self.halve(h))
        for lower, up in zip(self.lower, self.up, strict=True):
            skip = skipped.pop()
            # Nearest, because its gradient is deterministic on every device. Smoother interpolation is not.
            h = lower(F.interpolate(h, size=skip.shape[2:], mode="nearest"))
            h = up(torch.cat([skip, h], dim=1))
        maps: Tensor = self.out(h)
        return maps
