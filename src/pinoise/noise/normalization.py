"""Noise of a given size: its root mean square over live features, of one draw and of all that may be drawn."""

from __future__ import annotations

import torch
from torch import Tensor


def unit_rms(noise: Tensor, live: Tensor) -> Tensor:
    """Rescale every sample's noise to root mean square 1 over its live features.

    Args:
        noise: ε, shape (..., *shape), 0 in dead features.
        live: which features are, shape (*shape).

    >>> unit_rms(torch.tensor([[3.0, 0.0, 3.0]]), torch.tensor([True, False, True]))
    tensor([[1., 0., 1.]])
    """
    norm = torch.linalg.vector_norm(noise, dim=_features(live), keepdim=True)
    unit: Tensor = noise * live.sum().sqrt() / norm.clamp_min(_least(noise))
    return unit


def expected_rms(mean: Tensor | float, scale: Tensor, live: Tensor, *, variance: float) -> Tensor:
    """√ of the mean over live features of E ε² = μ² + v s², for every sample, shape (m, 1, …).

    Args:
        mean: μ, shape (m, *shape) or a number, 0 in dead features.
        scale: s, shape (m, *shape), 0 in dead features.
        live: which features are, shape (*shape).
        variance: v, that of ε where s is 1.

    >>> expected_rms(torch.tensor([[0.0, 4.0]]), torch.tensor([[3.0, 3.0]]), torch.ones(2, dtype=bool), variance=1.0)
    tensor([[4.1231]])
    """
    squares = (mean**2 + variance * scale.square()).sum(dim=_features(live), keepdim=True)
    return (squares / live.sum().clamp_min(1)).sqrt().clamp_min(_least(scale))


def _features(live: Tensor) -> tuple[int, ...]:
    return tuple(range(-live.ndim, 0))


def _least(noise: Tensor) -> float:
    """Squares of smaller numbers underflow: their norm is 0, and dividing by less would make the noise explode."""
    return float(torch.finfo(noise.dtype).tiny ** 0.5)
