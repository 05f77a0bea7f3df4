"""What keeps noise from vanishing: the paper's guard, and the distance from a prior."""

from __future__ import annotations

import torch
from torch import Tensor


def inverse_norm(noise: Tensor, drew: Tensor | None = None) -> Tensor:
    """1 / mean‖ε‖₂ over the samples, or over those that drew the noise (the paper's penalty on vision data).

    Args:
        noise: ε, of shape (m, *shape).
        drew: which samples received noise, of shape (m,); all of them if None.

    >>> inverse_norm(torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    tensor(0.2000)
    """
    norms: Tensor = torch.linalg.vector_norm(noise.flatten(1), dim=1)  # (m,)
    if drew is None:
        return norms.mean().reciprocal()
    # A batch in which nobody drew the noise has nothing to penalise.
    count = drew.sum()
    total = torch.where(drew, norms, 0).sum()
    return torch.where(count > 0, count / torch.where(count > 0, total, 1), 0)


def mean_log_ratio_squared(scale: Tensor, prior: Tensor, drew: Tensor | None = None) -> Tensor:
    """Mean over samples and features of (log σ − log r)², to second order a KL divergence from noise of scale r.

    Args:
        scale: σ, shape (m, *shape), or (1, *shape) for all samples together; 0 for dead features, which do not count.
        prior: r, shape (*shape).
        drew: which samples drew the noise, shape (m,); all of them if None.

    >>> mean_log_ratio_squared(torch.tensor([[1.0, 0.0, torch.e]]), torch.ones(3))
    tensor(0.5000)
    """
    live = scale > 0
    square = torch.where(live, torch.where(live, scale, 1).log() - prior.log(), 0).square().flatten(1).sum(dim=1)
    each = square / live.flatten(1).sum(dim=1).clamp_min(1)
    if drew is None or len(each) == 1:
        return each.mean()
    return torch.where(drew, each, 0).sum() / drew.sum().clamp_min(1)
