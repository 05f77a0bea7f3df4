"""What ``PiNoise`` refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import SupportsIndex, get_args

import torch
from torch import Tensor

from pinoise.choices import COVARIANCE, Distribution, Mean, ScaleMap
from pinoise.errors import UserError, unknown_choice
from pinoise.noise.columns import Columns


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


def check_scale(name: str, given: float | Tensor, shape: tuple[int, ...], *, least: float) -> Tensor:
    """Return one finite number for each feature, given as such or as one for all.

    Args:
        name: of the argument.
        given: ``feature_scale``, the standard deviations of features, 0 for dead ones; or ``initial_scale``, σ.
        shape: of a sample.
        least: the least number.

    >>> check_scale("initial_scale", 0.5, (2,), least=0.1)
    tensor([0.5000, 0.5000])
    """
    values = torch.as_tensor(given).detach().to(torch.get_default_dtype())
    if values.ndim and values.shape != shape:
        raise UserError(f"{name} has shape {tuple(values.shape)}: it must be a number, or have shape {shape}.")
    wrong = values[~torch.isfinite(values) | (values < least)]
    if wrong.numel():
        raise UserError(f"{name} is {float(wrong.flatten()[0])}: it must be a finite number of at least {least:g}.")
    return values.expand(shape).clone()


def check_names(distribution: str, mean: str, positive: str, normalize: float | None) -> None:
    """Refuse names that stand for nothing, and a root mean square that is none."""
    for kind, name, known in (
        ("distribution", distribution, Distribution),
        ("mean", mean, Mean),
        ("positive map", positive, ScaleMap),
    ):
        if name not in get_args(known):
            raise unknown_choice(kind, name, get_args(known))
    if normalize is not None and not (normalize > 0 and math.isfinite(normalize)):
        raise UserError(f"normalize is {normalize}: it must be a positive number, or None.")


def check_covariance(
    covariance: str,
    distribution: str,
    amplitude: float | None,
    initial_scale: object,
    *,
    has_support: bool,
) -> None:
    """Refuse a covariance that is unknown or does not fit the other arguments of ``PiNoise``.

    >>> check_covariance("differences", "gaussian", None, None, has_support=False)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: covariance 'differences' is that of neighbours in the data: give a support.
    """
    if covariance not in COVARIANCE.names:
        raise unknown_choice("covariance", covariance, COVARIANCE.names)
    if amplitude is not None and not (amplitude > 0 and math.isfinite(amplitude)):
        raise UserError(f"amplitude is {amplitude}: it must be a positive number, or None.")
    if amplitude is not None and initial_scale is not None:
        raise UserError(f"amplitude is {amplitude} and initial_scale is given too: both set σ; leave one out.")
    if covariance != "diagonal" and not has_support:
        raise UserError(f"covariance {covariance!r} is that of neighbours in the data: give a support.")
    if covariance != "diagonal" and distribution != "gaussian":
        raise UserError(
            f"covariance {covariance!r} belongs to distribution 'gaussian', not {distribution!r}: change one of them."
        )
    if amplitude is not None and not has_support:
        raise UserError(
            f"amplitude is {amplitude}, a multiple of how much neighbours differ, and this noise looks at none: leave "
            "it out, or choose another objective, covariance or number of neighbours."
        )


def check_columns(columns: Columns | None, shape: tuple[int, ...], *, has_donors: bool) -> None:
    """Refuse columns of other features than those of a sample, and columns without rows to take them from."""
    if columns is None:
        return
    if shape != (len(columns.of_feature),):
        raise UserError(f"columns are of {len(columns.of_feature)} features: samples have shape {shape}.")
    if not has_donors:
        raise UserError("columns of several features take the values of other rows: give a support, or donors.")


def check_along(data: object, neighbours: int) -> None:
    """Refuse training rows or a number of neighbours that ``PiNoise.along`` cannot take.

    >>> check_along(torch.zeros(3, 2), -1)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: neighbours is -1: give a whole number, or 0 for noise that does not move samples.
    """
    if not isinstance(data, Tensor) or not data.is_floating_point() or data.ndim < 2:
        found = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, Tensor) else type(data).__name__
        raise UserError(f"data is {found}: give training rows as a tensor of floating-point numbers, (n, *shape).")
    if not bool(torch.isfinite(data).all()):
        raise UserError("data has an entry that is nan or infinite: fill it in or leave its row out.")
    if not isinstance(neighbours, int) or neighbours < 0:
        raise UserError(f"neighbours is {neighbours}: give a whole number, or 0 for noise that does not move samples.")
