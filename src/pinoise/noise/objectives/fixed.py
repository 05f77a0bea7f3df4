"""Noise that is not learned: only θ minimises the contrastive loss."""

from __future__ import annotations

from torch import Tensor, nn


class Fixed(nn.Module):
    """min over θ of mean ℓ(x, ε), with σ at its initial value (the paper's Random Noise).

    >>> import torch
    >>> Fixed()(torch.tensor([1.0, 3.0]))
    tensor(2.)
    """

    learns_noise = False

    def forward(self, losses: Tensor, noise: Tensor | None = None, drew: Tensor | None = None) -> Tensor:
        """Return the mean of the per-sample losses (m,)."""
        return losses.mean()
