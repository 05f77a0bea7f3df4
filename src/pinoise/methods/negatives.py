"""What methods with a memory have in common: a positive against negatives that all samples share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pinoise.methods.base import full_precision

TEMPERATURE = 0.2
"""τ of methods with a memory."""


def info_nce(
    anchor: Tensor,
    positive: Tensor,
    negatives: Tensor,
    *,
    excluded: Tensor | None = None,
    temperature: float = TEMPERATURE,
) -> Tensor:
    """InfoNCE: −log of exp(aᵀp/τ) / (exp(aᵀp/τ) + Σ exp(aᵀv/τ)); a and p are normalised here.

    Args:
        anchor: a, shape (m, dim).
        positive: p, shape (m, dim).
        negatives: v, unit vectors, shape (n, dim).
        excluded: which of them are not a sample's negatives, shape (m, n); none if None.
        temperature: τ.

    Returns:
        The loss of every sample, shape (m,).

    >>> info_nce(torch.eye(2), torch.eye(2), torch.eye(2), temperature=1.0)  # log(2 + 1/e)
    tensor([0.8620, 0.8620])
    """
    with full_precision(anchor, positive, negatives) as (anchor, positive, negatives):
        anchor, positive = F.normalize(anchor, dim=1), F.normalize(positive, dim=1)
        near = (anchor * positive).sum(dim=1, keepdim=True)  # (m, 1)
        far = anchor @ negatives.T  # (m, n)
        if excluded is not None:
            far = far.masked_fill(excluded, -torch.inf)
        logits = torch.cat([near, far], dim=1) / temperature  # (m, 1 + n)
        return F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.int64), reduction="none")
