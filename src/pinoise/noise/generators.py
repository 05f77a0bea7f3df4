"""The networks of p_ψ(ε|x), which turn x into raw numbers; ``sigma`` maps these to σ ≥ 0.

A generator is any module from (m, *shape) to (m, outputs, *shape), or to the same numbers flattened in that order.
Output 0 becomes the scale. Output 1, if there is one, becomes the mean.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pinoise.choices import GENERATOR, Size, check_call, find, name_of, options_of
from pinoise.errors import UserError
from pinoise.modes import without_trace
from pinoise.networks.mlp import HIDDEN, Linear, check_sizes

PAPERS_GENERATOR = "mlp"  # the paper's generator for vectors


class HeadedGenerator(nn.Module):
    """A trunk from x to features, then for each output a head: a hidden layer with ReLU, and a number for each feature.

    Args:
        shape: the shape of one sample.
        outputs: 1 (scale), or 2 (scale, mean).
        trunk: a network from samples to features (m, features).
        features: the width of the trunk's output.
        hidden: the width of the heads' hidden layers.
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, trunk: nn.Module, features: int, *, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.trunk = trunk
        self.heads = nn.ModuleList(
            nn.Sequential(Linear(features, hidden), nn.ReLU(inplace=True), Linear(hidden, math.prod(shape)))
            for _ in range(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, *shape)."""
        h = self.trunk(x)  # (m, features)
        return torch.stack([head(h) for head in self.heads], dim=1).reshape(x.shape[0], -1, *self.shape)


class MLPGenerator(HeadedGenerator):
    """The paper's DNN3: a trunk d→h→h, then for each output a head h→h→d.

    With a learned mean (two outputs) one sample costs 3dh + 3h² multiply-accumulates, as in the paper's cost table.

    >>> MLPGenerator((5,), outputs=2, hidden=8)(torch.zeros(3, 5)).shape
    torch.Size([3, 2, 5])
    """

    trunk: nn.Sequential

    def __init__(self, shape: tuple[int, ...], outputs: int, *, hidden: Size = HIDDEN) -> None:
        first, second = Linear(math.prod(shape), hidden), Linear(hidden, hidden)
        trunk = nn.Sequential(nn.Flatten(), first, nn.ReLU(inplace=True), second, nn.ReLU(inplace=True))
        super().__init__(shape, outputs, trunk, hidden, hidden=hidden)


class SharedGenerator(nn.Module):
    """A linear head on the encoder's features of x. The noise then costs almost nothing.

    The encoder runs without gradient: ψ is the head alone, and θ learns from the contrastive loss alone. The generator
    refers to the encoder but does not own it, so ``parameters()`` and ``state_dict()`` leave the encoder out.

    >>> encoder = nn.Linear(5, 4)
    >>> generator = SharedGenerator((5,), outputs=1, encoder=encoder, features=4)
    >>> generator(torch.zeros(3, 5)).shape, sum(p.numel() for p in generator.parameters())
    (torch.Size([3, 1, 5]), 25)
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, encoder: nn.Module, features: int) -> None:
        super().__init__()
        self.shape = shape
        self.outputs = outputs
        self._encoder = (encoder,)  # a tuple hides it from nn.Module's registration
        self.head = Linear(features, outputs * math.prod(shape))

    def forward(self, x: Tensor, features: Tensor | None = None) -> Tensor:
        """Return raw parameters (m, outputs, *shape). Known ``features`` (m, dim) save a pass through the encoder."""
        if features is None:
            with without_trace(self._encoder[0], x):
                features = self._encoder[0](x)
        raw: Tensor = self.head(features.detach())
        return raw.reshape(x.shape[0], self.outputs, *self.shape)


class GlobalGenerator(nn.Module):
    """One number per feature and output, the same for every sample. Its cost is negligible.

    >>> GlobalGenerator((5,), outputs=2)(torch.zeros(3, 5)).shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(1, outputs, *shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (1, outputs, *shape)."""
        return self.raw


class ConstantGenerator(nn.Module):
    """No parameters: σ keeps its initial value and μ is 0 (the Random Noise baseline)."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.shape = shape
        self.outputs = outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (1, outputs, *shape): the same for every sample."""
        return x.new_zeros(1, self.outputs, *self.shape)


def make_generator(
    generator: Any,
    shape: tuple[int, ...],
    outputs: int,
    *,
    encoder: nn.Module | None = None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Return a generator for samples of a shape.

    Args:
        generator: a name, an import path, a module, or a class or function that makes one from ``shape`` and
            ``outputs``.
        shape: the shape of one sample.
        outputs: 1 (scale), or 2 (scale, mean).
        encoder: the encoder, for a generator that reads its features.
        options: the generator's options.

    >>> make_generator("unet", (1, 7, 5), 2, options={"width": 4})(torch.zeros(3, 1, 7, 5)).shape
    torch.Size([3, 2, 1, 7, 5])
    """
    part = find(GENERATOR, generator) if isinstance(generator, str) else generator
    if isinstance(part, nn.Module):
        return part
    if part is None:
        raise UserError(f"generator {generator!r} leaves the choice to an objective: name one here.")
    if not callable(part):
        raise UserError(f"generator {generator!r} is of type {type(part).__name__}: give {GENERATOR.own}.")
    site = {"encoder": encoder} if "encoder" in inspect.signature(part).parameters else {}
    given = {**(options or {}), **site}
    name = generator if isinstance(generator, str) else name_of(generator)
    check_call(GENERATOR, name, part, 2, given)
    made = part(shape, outputs, **given)
    if not isinstance(made, nn.Module):
        raise UserError(f"generator {name!r} made {type(made).__name__}: it must make a torch module.")
    return made


def sized_generator(
    generator: Any, shape: tuple[int, ...], outputs: int, *, encoder: nn.Module | None, **sizes: int | None
) -> nn.Module:
    """Return a generator with the given sizes, such as ``hidden``, where a named one has them."""
    part = find(GENERATOR, generator) if isinstance(generator, str) else None
    takes = sizes if part is None else options_of(part)
    options = {name: size for name, size in sizes.items() if size is not None and name in takes}
    check_sizes("the generator", **options)
    return make_generator(generator, shape, outputs, encoder=encoder, options=options)
