"""The paper's guard against vanishing noise."""

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
