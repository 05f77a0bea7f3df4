"""Checks of the arguments of ``PiNoise``: the shape of a sample and the scales."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import SupportsIndex

import torch
from torch import Tensor

from pinoise.errors import UserError


def check_shape(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return the shape of one sample. A number of features d is short for (d,).

    >>> check_shape(4), check_shape([3, 8, 8])
    ((4,), (3, 8, 8))
    """
    # SupportsIndex also covers numpy's integers.
    sizes = (index(shape),) if isinstance(shape, SupportsIndex) else tuple(index(size) for size in shape)
    if not sizes or any(size < 1 for size in sizes):
        raise UserError(f"shape is {shape}: every size of a sample must be at least 1.")
    return sizes


def check_feature_scale(feature_scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Check the standard deviations of features, 0 for dead ones, and return a copy."""
    if feature_scale.shape != shape:
        raise UserError(f"feature_scale has shape {tuple(feature_scale.shape)}: it must be {shape}.")
    wrong = feature_scale[~torch.isfinite(feature_scale) | (feature_scale < 0)]
    if len(wrong):
        raise UserError(
            f"feature_scale has an entry {float(wrong[0])}: "
            "it holds standard deviations, which are finite and at least 0 (0 for a dead feature)."
        )
    return feature_scale.detach().to(torch.get_default_dtype()).clone()


def check_initial_scale(initial_scale: float | Tensor, shape: tuple[int, ...], *, least: float) -> Tensor:
    """Return the initial σ of every feature, given as one number per feature or one for all.

    >>> check_initial_scale(0.5, (2,), least=0.1)
    tensor([0.5000, 0.5000])
    """
    values = torch.as_tensor(initial_scale).detach().to(torch.get_default_dtype())
    if values.ndim and values.shape != shape:
        raise UserError(f"initial_scale has shape {tuple(values.shape)}: it must be a number, or have shape {shape}.")
    wrong = values[~torch.isfinite(values) | (values < least)]
    if wrong.numel():
        raise UserError(
            f"initial_scale is {float(wrong.flatten()[0])}: it must be a finite number of at least {least:g}."
        )
    return values.expand(shape).clone()
