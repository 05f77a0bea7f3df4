"""Checks of images and of the sizes of networks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from pinoise.choices import Size, within
from pinoise.errors import UserError


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


def check_sizes(owner: str, **sizes: int) -> None:
    """Refuse sizes of layers that are out of range.

    >>> check_sizes("the head", hidden=0)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: hidden of the head is 0: it must be from 1 to 65536.
    """
    for name, size in sizes.items():
        within(f"{name} of {owner}", size, Size)


def width_of(name: str, module: nn.Module) -> int:
    """Return the output width of a module.

    >>> width_of("head", nn.Linear(3, 2))
    2
    """
    features = getattr(module, "out_features", None)
    if not isinstance(features, int):
        kind = type(module).__name__
        raise UserError(f"the {name} {kind} does not state its output size: set its integer attribute out_features.")
    return features
