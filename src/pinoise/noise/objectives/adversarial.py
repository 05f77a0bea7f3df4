"""Noise against the encoder, as in Viewmaker (Tamkin et al., 2021)."""

from __future__ import annotations

from torch import Tensor

from pinoise.noise.objectives.base import Look, Objective


class Adversarial(Objective):
    """min over θ, max over ψ of mean ℓ(x, ε); the noise must be bounded elsewhere, by its map or a budget.

    >>> import torch
    >>> from pinoise.noise.objectives import Outcome
    >>> sigma = torch.tensor(2.0, requires_grad=True)
    >>> def look(theta=True, psi=1.0):
    ...     return Outcome((psi * sigma).expand(3))
    >>> torch.autograd.grad(Adversarial()(look)[0], sigma)
    (tensor(-1.),)
    """

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the mean loss, whose gradient is reversed for ψ, and the loss of every sample."""
        losses = look(psi=-1.0).losses
        return losses.mean(), losses
