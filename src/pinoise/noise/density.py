"""The density and the entropy of noise, over live features and in nats."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pinoise.noise.distributions import Factors, log_determinant, mahalanobis


def entropy(scale: Tensor, live: Tensor, *, bounded: bool = False, factors: Factors | None = None) -> Tensor:
    """Return the entropy of ε, shape (m,).

    Args:
        scale: σ, or w of uniform noise, shape (m, *shape).
        live: which features have noise, shape (*shape).
        bounded: whether noise is uniform on (−w, w), rather than Gaussian.
        factors: the correlations of Gaussian noise; None for independent features.

    >>> entropy(torch.tensor([[0.5]]), torch.tensor([True]), bounded=True)
    tensor([0.])
    """
    each = torch.where(live, torch.where(live, scale, 1).log(), 0).flatten(1).sum(dim=1)
    if bounded:
        return each + live.sum() * math.log(2)
    if factors is not None:
        each = each + log_determinant(factors, live.flatten()) / 2
    return each + live.sum() * (1 + math.log(2 * math.pi)) / 2


def log_density(
    centred: Tensor, scale: Tensor, live: Tensor, *, bounded: bool = False, factors: Factors | None = None
) -> Tensor:
    """Return log p(ε), shape (m,).

    Args:
        centred: ε − μ, shape (m, *shape).
        scale: as in ``entropy``, like the others.
        live: which features have noise.
        bounded: whether noise is uniform.
        factors: the correlations.

    >>> log_density(torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([True, True]))  # −log 2π
    tensor([-1.8379])
    """
    n = torch.where(live, centred / torch.where(live, scale, 1), 0).flatten(1)
    alive = live.flatten()
    nats = entropy(scale, live, bounded=bounded, factors=factors)
    if bounded:
        outside = (n[:, alive].abs() > 1).any(dim=1)
        return torch.where(outside, -math.inf, -nats)
    square = n.square().sum(dim=1) if factors is None else mahalanobis(n, factors, alive)
    return live.sum() / 2 - square / 2 - nats
