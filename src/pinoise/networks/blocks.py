"""Checks of images and of the sizes of networks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

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


def check_width(width: int, *, owner: str, name: str = "width") -> None:
    """Refuse a network size below 1."""
    if width < 1:
        raise UserError(f"{name} of {owner} is {width}: it must be at least 1.")
