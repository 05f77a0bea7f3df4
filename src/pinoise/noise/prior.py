"""r: how much neighbours differ in each feature, which is where learned noise starts and what it stays near."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pinoise.noise.scale_maps import FARTHEST

SMALLEST_PRIOR = 0.1
"""The least median of the prior, in standard deviations."""


def neighbour_spread(x: Tensor, neighbours: Tensor) -> Tensor:
    """r with r_j² = ½ · mean over rows i and their neighbours k of (x_kj − x_ij)²: how much neighbours disagree.

    For two draws from one place the square of their difference is twice the variance, hence the half.

    Args:
        x: rows (n, d).
        neighbours: the positions of each row's neighbours among them, shape (n, k).

    >>> neighbour_spread(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([[1], [0]]))
    tensor([1.4142, 0.0000])
    """
    squares = sum(((x[column] - x).square().mean(dim=0) for column in neighbours.T), start=x.new_zeros(x.shape[1]))
    return (squares / (2 * neighbours.shape[1])).sqrt()


def prior_scale(spread: Tensor, feature_scale: Tensor) -> Tensor:
    """Return r in standard deviations of each feature, as noise of fixed entropy can take it on.

    It is held within e^±2 of its median over live features: a feature in which no two neighbours differ, as duplicates
    make it, would have log r = −∞. Where neighbours hardly differ at all, it is raised to a median of 0.1: views that
    are equal teach nothing. A dead feature, whose scale is 0, gets 1 and no noise.

    Args:
        spread: how much neighbours differ, shape (*shape).
        feature_scale: the standard deviation of each feature, shape (*shape).

    >>> prior_scale(torch.tensor([0.0, 1.0, 2.0, 9.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]))
    tensor([0.2707, 1.0000, 2.0000, 9.0000, 1.0000])
    """
    live = feature_scale > 0
    relative = torch.where(live, spread / torch.where(live, feature_scale, 1), 0)
    differing = relative[relative > 0]
    middle = differing.median() if differing.numel() else relative.new_ones(())
    held = relative.clamp(middle * math.exp(-FARTHEST), middle * math.exp(FARTHEST))
    return torch.where(live, held * (SMALLEST_PRIOR / middle).clamp_min(1), 1)
