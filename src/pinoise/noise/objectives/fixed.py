"""Noise that is not learned: only θ minimises the contrastive loss."""

from __future__ import annotations

from torch import Tensor

from pinoise.noise.objectives.base import Look, Objective


class Fixed(Objective):
    """min over θ of mean ℓ(x, ε), with σ at its initial value (the paper's Random Noise).

    >>> import torch
    >>> from pinoise.noise.objectives import Outcome
    >>> Fixed()(lambda theta=True, psi=1.0: Outcome(torch.tensor([1.0, 3.0])))[0]
    tensor(2.)
    """

    learns_noise = False

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the mean loss, and the loss of every sample."""
        losses = look(psi=0.0).losses
        return losses.mean(), losses
