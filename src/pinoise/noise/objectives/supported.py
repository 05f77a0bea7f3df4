"""Data-supported π-noise: the paper's cooperative direction, made safe from collapse."""

from __future__ import annotations

from torch import Tensor

from pinoise.noise.objectives.base import Look, Objective
from pinoise.noise.penalty import mean_log_ratio_squared


class Supported(Objective):
    """min over θ and ψ of mean ℓ(x, ε) + λ · mean (log σ − log r)², for noise of fixed entropy along the data.

    ψ cannot make the views easier by making less noise, as ``fixed-entropy`` noise only moves between features; and r,
    how much neighbours differ in each feature, keeps any feature from becoming a clean channel from which the encoder
    could tell samples apart.

    Args:
        prior: r, in standard deviations of each feature, shape (*shape).
        weight: λ.

    >>> import torch
    >>> from pinoise.noise import Noise
    >>> from pinoise.noise.objectives import Outcome
    >>> noise = Noise(torch.zeros(2, 1), torch.full((1, 1), torch.e))
    >>> Supported(prior=torch.ones(1), weight=0.5)(lambda theta=True, psi=1.0: Outcome(torch.ones(2), noise))[0]
    tensor(1.5000)
    """

    prior: Tensor

    def __init__(self, *, prior: Tensor, weight: float = 0.3) -> None:
        super().__init__()
        self.register_buffer("prior", prior)
        self.weight = weight

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the mean loss with its distance from the prior, and the loss of every sample."""
        losses, noise, drew = look()
        loss = losses.mean()
        if self.weight and noise is not None:
            loss = loss + self.weight * mean_log_ratio_squared(noise.scale, self.prior, drew)
        return loss, losses
