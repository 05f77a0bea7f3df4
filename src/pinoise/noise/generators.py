"""Networks that turn x into the raw parameters of p_ψ(ε|x).

A generator is any module from (m, *shape) to (m, outputs, *shape), or to the same numbers flattened in that order:
output 0 becomes the scale, output 1, if there is one, the mean.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pinoise.errors import UserError, unknown_choice
from pinoise.networks.blocks import without_trace
from pinoise.networks.resnet import Depth
from pinoise.noise.image_generators import ResNetGenerator, SharedMapGenerator, UNetGenerator

GENERATORS = ("mlp", "shared", "global", "constant", "resnet18", "resnet50", "unet")


class MLPGenerator(nn.Module):
    """The paper's DNN3: a trunk d→h→h, then for each output a head h→h→d.

    With the mean learned (two outputs) one sample costs 3dh + 3h² multiply-accumulates, as in the paper's cost table.

    >>> MLPGenerator((5,), outputs=2, hidden=8)(torch.zeros(3, 5)).shape
    torch.Size([3, 2, 5])
    """

    def __init__(self, shape: tuple[int, ...], *, outputs: int, hidden: int = 1024) -> None:
        super().__init__()
        dim = math.prod(shape)
        self.shape = shape
        self.trunk = nn.Sequential(
            nn.Flatten(), nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim)) for _ in range(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, *shape)."""
        h = self.trunk(x)  # (m, hidden)
        return torch.stack([head(h) for head in self.heads], dim=1).reshape(len(x), -1, *self.shape)


class SharedGenerator(nn.Module):
    """A linear head on the encoder's own features of x, which makes the noise nearly free.

    The encoder runs without gradient: ψ is the head alone, and θ learns from the contrastive loss alone. The encoder is
    referred to, not owned, so it appears neither in ``parameters()`` nor in ``state_dict()`` of the generator.

    >>> encoder = nn.Linear(5, 4)
    >>> generator = SharedGenerator((5,), outputs=1, encoder=encoder, features=4)
    >>> generator(torch.zeros(3, 5)).shape, sum(p.numel() for p in generator.parameters())
    (torch.Size([3, 1, 5]), 25)
    """

    def __init__(self, shape: tuple[int, ...], *, outputs: int, encoder: nn.Module, features: int) -> None:
        super().__init__()
        self.shape = shape
        self.outputs = outputs
        self._encoder = (encoder,)  # a tuple hides it from nn.Module's registration
        self.head = nn.Linear(features, outputs * math.prod(shape))

    def forward(self, x: Tensor, features: Tensor | None = None) -> Tensor:
        """Return raw parameters (m, outputs, *shape), from features (m, dim) where they are known already."""
        if features is None:
            with without_trace(self._encoder[0], x):
                features = self._encoder[0](x)
        raw: Tensor = self.head(features.detach())
        return raw.reshape(len(x), self.outputs, *self.shape)


class GlobalGenerator(nn.Module):
    """One number per feature and output, the same for every sample: noise that costs next to nothing.

    >>> GlobalGenerator((5,), outputs=2)(torch.zeros(3, 5)).shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, shape: tuple[int, ...], *, outputs: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(1, outputs, *shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (1, outputs, *shape)."""
        return self.raw


class ConstantGenerator(nn.Module):
    """No parameters: σ keeps its initial value and μ is 0 (the Random Noise baseline)."""

    def __init__(self, *, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (1, outputs, *shape): the same for every sample."""
        return x.new_zeros(1, self.outputs, *x.shape[1:])


def build_generator(
    name: str,
    shape: tuple[int, ...],
    *,
    outputs: int,
    hidden: int = 1024,
    encoder: nn.Module | None = None,
    width: int | None = None,
) -> nn.Module:
    """Return the generator of that name.

    Args:
        name: one of ``GENERATORS``; ``resnet18``, ``resnet50`` and ``unet`` are for images.
        shape: the shape of one sample.
        outputs: 1 (scale), or 2 (scale, mean).
        hidden: width of the fully connected layers of ``mlp`` and of the heads of ``resnet18`` and ``resnet50``.
        encoder: what ``shared`` reads: its maps where samples are images and it has a method ``maps``, or its features.
        width: channels of ``resnet18``, ``resnet50`` (64 if None) and ``unet`` (32 if None) at full size.

    >>> build_generator("unet", (1, 7, 5), outputs=2, width=4)(torch.zeros(3, 1, 7, 5)).shape
    torch.Size([3, 2, 1, 7, 5])
    """
    if name == "mlp":
        return MLPGenerator(shape, outputs=outputs, hidden=hidden)
    if name == "global":
        return GlobalGenerator(shape, outputs=outputs)
    if name == "constant":
        return ConstantGenerator(outputs=outputs)
    if name in ("resnet18", "resnet50"):
        depth: Depth = 18 if name == "resnet18" else 50
        return ResNetGenerator(shape, outputs=outputs, depth=depth, width=64 if width is None else width, hidden=hidden)
    if name == "unet":
        return UNetGenerator(shape, outputs=outputs, width=32 if width is None else width)
    if name == "shared":
        return _shared(shape, outputs=outputs, encoder=encoder)
    raise unknown_choice("generator", name, GENERATORS)


def _shared(shape: tuple[int, ...], *, outputs: int, encoder: nn.Module | None) -> nn.Module:
    if encoder is not None and len(shape) == 3 and hasattr(encoder, "maps"):
        return SharedMapGenerator(shape, outputs=outputs, encoder=encoder)
    features = getattr(encoder, "out_features", None)
    if encoder is None or not isinstance(features, int):
        found = "none" if encoder is None else f"{type(encoder).__name__}, whose out_features is {features!r}"
        raise UserError(
            f"generator 'shared' reads the features of an encoder and was given {found}: "
            "pass encoder=, a module that states its output size as the integer attribute out_features."
        )
    return SharedGenerator(shape, outputs=outputs, encoder=encoder, features=features)
