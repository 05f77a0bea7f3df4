"""ResNet18 and ResNet50 (He et al., 2016) under torchvision's names, so that its published weights load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, get_args

from torch import Tensor, nn

from pinoise.choices import Size
from pinoise.errors import UserError, unknown_choice
from pinoise.networks.mlp import check_sizes
from pinoise.networks.weights import misfit, read_weights

Depth = Literal[18, 50]
Stem = Literal["auto", "cifar", "imagenet"]
STEM: Stem = "auto"

BLOCKS: dict[int, tuple[int, int, int, int]] = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}

WIDTH = 64  # channels of the first stage in the published networks

# The largest side, in pixels, of images that keep their size in the stem. Larger ones are reduced fourfold there.
LARGEST_CIFAR_STEM = 64


def image_shape(shape: Sequence[int], *, owner: str) -> tuple[int, int, int]:
    """Return the shape (C, H, W) of one image. Refuse any other shape.

    >>> image_shape((3, 8, 8), owner="a ResNet")
    (3, 8, 8)
    """
    if len(shape) != 3 or any(size < 1 for size in shape):
        raise UserError(f"{owner} takes images, (channels, height, width): one sample has shape {tuple(shape)}.")
    channels, height, width = shape
    return channels, height, width


def check_images(x: Tensor, channels: int, *, owner: str) -> None:
    """Refuse a batch whose shape is not (m, channels, height, width)."""
    if x.ndim != 4 or x.shape[1] != channels:
        raise UserError(
            f"{owner} was made for images of {channels} {'channel' if channels == 1 else 'channels'}, "
            f"(m, {channels}, height, width): it was given a tensor of shape {tuple(x.shape)}."
        )


class Shortcut(nn.Conv2d):
    """A strided 1×1 convolution, computed without a stride on every stride-th pixel.

    The strided convolution of oneDNN (torch 2.13 on a CPU) writes out of bounds in its backward pass if there are few
    channels in the channels-last layout.

    >>> import torch
    >>> x = torch.randn(2, 3, 5, 5)
    >>> shortcut = Shortcut(3, 4, stride=2)
    >>> torch.allclose(shortcut(x), torch.nn.functional.conv2d(x, shortcut.weight, stride=2), atol=1e-6)
    True
    """

    def __init__(self, in_channels: int, out_channels: int, *, stride: int) -> None:
        super().__init__(in_channels, out_channels, 1, bias=False)
        self.every = stride

    def forward(self, x: Tensor) -> Tensor:
        """Return maps (m, out_channels, h, w), h and w divided by the stride."""
        return super().forward(x[:, :, :: self.every, :: self.every])


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, in_channels: int, channels: int, *, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """Return maps (m, channels, h, w), h and w divided by the stride."""
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu(h + shortcut)
        return out


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions beside a shortcut. The 3×3 one has the stride (torchvision's version 1.5)."""

    expansion = 4

    def __init__(self, in_channels: int, channels: int, *, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, channels * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """Return maps (m, 4 * channels, h, w), h and w divided by the stride."""
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.relu(self.bn2(self.conv2(h)))
        h = self.bn3(self.conv3(h))
        shortcut = x if self.downsample is None else self.downsample(x)
        out: Tensor = self.relu(h + shortcut)
        return out


def _stage(
    block: type[BasicBlock] | type[Bottleneck], in_channels: int, channels: int, *, blocks: int, stride: int
) -> nn.Sequential:
    """Return blocks of one width. The first block and its shortcut change the size."""
    out_channels = channels * block.expansion
    downsample = None
    if stride != 1 or in_channels != out_channels:
        downsample = nn.Sequential(Shortcut(in_channels, out_channels, stride=stride), nn.BatchNorm2d(out_channels))
    first = block(in_channels, channels, stride=stride, downsample=downsample)
    return nn.Sequential(first, *(block(out_channels, channels, stride=1, downsample=None) for _ in range(blocks - 1)))


class ResNet(nn.Module):
    """The paper's backbone for images, without the classifier. It takes images of any size, as multi-crop needs.

    Args:
        shape: the shape of one image, (C, H, W); C is fixed, H and W choose the stem.
        width: channels of the first stage; 8 or 16 suit small machines.
        stem: ``"cifar"`` (3×3 convolution, size kept), ``"imagenet"`` (7×7 convolution of stride 2, then max pooling),
            or ``"auto"``: the first for sides up to 64 pixels, the second for larger images.
        weights: a file with a published state dict, for ``load_published``.

    >>> import torch
    >>> network = ResNet18((3, 8, 8), width=4)
    >>> x = torch.zeros(2, 3, 8, 8)
    >>> network(x).shape, network.out_features, network.maps(x).shape, network.map_channels
    (torch.Size([2, 32]), 32, torch.Size([2, 16, 2, 2]), 16)
    """

    for_images: ClassVar[bool] = True
    depth: ClassVar[Depth]

    def __init__(
        self, shape: tuple[int, ...], *, width: Size = WIDTH, stem: Stem = STEM, weights: Path | None = None
    ) -> None:
        super().__init__()
        if stem not in get_args(Stem):
            raise unknown_choice("stem", stem, get_args(Stem))
        self._owner = f"a ResNet{self.depth}"
        self.channels, height, side = image_shape(shape, owner=self._owner)
        check_sizes(self._owner, width=width)
        self.weights = weights
        self.width = width
        if stem == "auto":
            stem = "cifar" if max(height, side) <= LARGEST_CIFAR_STEM else "imagenet"
        self.stem: Stem = stem
        size, stride = (3, 1) if stem == "cifar" else (7, 2)
        self.conv1 = nn.Conv2d(self.channels, width, size, stride=stride, padding=size // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if stem == "cifar" else nn.MaxPool2d(3, stride=2, padding=1)
        block = BasicBlock if self.depth == 18 else Bottleneck
        first, second, third, fourth = BLOCKS[self.depth]
        wide = width * block.expansion
        self.layer1 = _stage(block, width, width, blocks=first, stride=1)
        self.layer2 = _stage(block, wide, 2 * width, blocks=second, stride=2)
        self.layer3 = _stage(block, 2 * wide, 4 * width, blocks=third, stride=2)
        self.layer4 = _stage(block, 4 * wide, 8 * width, blocks=fourth, stride=2)
        self.map_channels = 4 * wide
        self.out_features = 8 * wide
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return pooled features (m, out_features) of images (m, C, h, w)."""
        features: Tensor = self.layer4(self.maps(x)).mean(dim=(2, 3))
        return features

    def maps(self, x: Tensor) -> Tensor:
        """Return the third stage's maps (m, map_channels, h', w'): 1/4 of the side, or 1/16 with stem ``imagenet``."""
        check_images(x, self.channels, owner=self._owner)
        h = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        maps: Tensor = self.layer3(self.layer2(self.layer1(h)))
        return maps

    def load_published(self) -> None:
        """Load the file of published weights, if one was given. A trained network that is read back needs no file."""
        if self.weights is not None:
            self.load_torchvision(read_weights(self.weights))

    def load_torchvision(self, state: Mapping[str, Tensor]) -> None:
        """Load a state dict with torchvision's names. The classifier ``fc`` is ignored; every other name must match.

        >>> import torch
        >>> network, other = (ResNet18((3, 8, 8), width=4) for _ in range(2))
        >>> classifier = {"fc.weight": torch.zeros(10, 32), "fc.bias": torch.zeros(10)}
        >>> network.load_torchvision({**other.state_dict(), **classifier})
        >>> torch.equal(network.layer4[1].conv2.weight, other.layer4[1].conv2.weight)
        True
        """
        own = self.state_dict()
        given = {name: value for name, value in state.items() if name not in ("fc.weight", "fc.bias")}
        # The oldest published files have no num_batches_tracked.
        counts = {name: value for name, value in own.items() if name.endswith("num_batches_tracked")}
        if fault := misfit(own, counts | given):
            raise UserError(
                f"these weights do not fit {self._owner} of width {self.width} and stem {self.stem!r} for images of "
                f"{self.channels} channels ({fault}): choose what they were made with; torchvision's have width 64, "
                "stem 'imagenet' and 3 channels."
            )
        self.load_state_dict(own | given)


class ResNet18(ResNet):
    """A ResNet of depth 18.

    >>> ResNet18((3, 8, 8), width=4).out_features
    32
    """

    depth = 18


class ResNet50(ResNet):
    """A ResNet of depth 50.

    >>> ResNet50((3, 8, 8), width=4).out_features
    128
    """

    depth = 50
