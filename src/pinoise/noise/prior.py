"""What keeps noise from vanishing: a prior scale r, the distance from it, and the paper's penalty."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pinoise.noise.scale_maps import FARTHEST
from pinoise.noise.search import BLOCK_ENTRIES

PRIOR_WEIGHT = 0.3  # λ: how strongly the learned σ is held near r

SMALLEST_PRIOR = 0.1  # the smallest median of the prior, in standard deviations


def neighbour_spread(x: Tensor, pairs: Tensor) -> Tensor:
    """r with r_j² = ½ · mean over pairs of neighbours (i, k) of (x_kj − x_ij)²: the spread of neighbours.

    The expected squared difference of two draws from one distribution is twice the variance, hence the factor ½.

    Args:
        x: rows (n, d).
        pairs: the positions of a row and of one of its neighbours in x, shape (p, 2).

    >>> neighbour_spread(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([[0, 1], [1, 0]]))
    tensor([1.4142, 0.0000])
    """
    squares = x.new_zeros(x.shape[1])
    for some in pairs.split(max(1, BLOCK_ENTRIES // x.shape[1])):
        squares += (x[some[:, 0]] - x[some[:, 1]]).square().sum(dim=0)
    return (squares / (2 * len(pairs))).sqrt()


def prior_scale(spread: Tensor, feature_scale: Tensor) -> Tensor:
    """Return r in standard deviations of each feature, in a range that noise of fixed entropy can reach.

    r is kept within a factor e^±2 of its median over live features. Otherwise a feature in which all neighbours are
    equal, for example because of duplicates, would have log r = −∞. If neighbours hardly differ at all, r is raised to
    a median of 0.1, because equal views teach nothing. A dead feature, whose scale is 0, gets r = 1 and no noise.

    Args:
        spread: the spread of neighbours, shape (*shape).
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


def _own(each: Tensor) -> Tensor:
    return each


def mean_log_ratio_squared(
    scale: Tensor, prior: Tensor, drew: Tensor | None = None, *, joined: Callable[[Tensor], Tensor] = _own
) -> Tensor:
    """Mean over samples and features of (log σ − log r)², to second order a KL divergence from noise of scale r.

    Args:
        scale: σ, shape (m, *shape), or (1, *shape) for all samples. Dead features have σ = 0 and do not count.
        prior: r, shape (*shape).
        drew: which samples drew the noise, shape (m,); all of them if None.
        joined: from the numbers of these samples to those of all, where several processes have some samples each.

    >>> mean_log_ratio_squared(torch.tensor([[1.0, 0.0, torch.e]]), torch.ones(3))
    tensor(0.5000)
    """
    live = scale > 0
    square = torch.where(live, torch.where(live, scale, 1).log() - prior.log(), 0).square().flatten(1).sum(dim=1)
    each = square / live.flatten(1).sum(dim=1).clamp_min(1)
    if drew is None or len(each) == 1:
        return each.mean()
    return joined(torch.where(drew, each, 0)).sum() / joined(drew.to(each.dtype)).sum().clamp_min(1)


def inverse_norm(noise: Tensor, drew: Tensor | None = None, *, joined: Callable[[Tensor], Tensor] = _own) -> Tensor:
    """1 / mean‖ε‖₂ over the samples that received noise (the paper's penalty on vision data).

    Args:
        noise: ε, of shape (m, *shape).
        drew: which samples received noise, of shape (m,); all of them if None.
        joined: as in ``mean_log_ratio_squared``.

    >>> inverse_norm(torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    tensor(0.2000)
    """
    norms: Tensor = torch.linalg.vector_norm(noise.flatten(1), dim=1)  # (m,)
    if drew is None:
        return joined(norms).mean().reciprocal()
    # If no sample received noise, there is nothing to penalise.
    count = joined(drew.to(norms.dtype)).sum()
    total = joined(torch.where(drew, norms, 0)).sum()
    return torch.where(count > 0, count / torch.where(count > 0, total, 1), 0)
