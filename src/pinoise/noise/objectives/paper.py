"""The paper's objective: θ and ψ both minimise the contrastive loss."""

from __future__ import annotations

from torch import Tensor

from pinoise.noise.objectives.base import Look, Objective
from pinoise.noise.penalty import inverse_norm


class Paper(Objective):
    """min over θ and ψ of mean ℓ(x, ε) + λ / mean‖ε‖₂ (Eq. 17 and the paper's penalty on vision data).

    With λ = 0, as the paper has it on vectors, σ tends to 0: less noise makes the two views easier to match.

    >>> import torch
    >>> from pinoise.noise import Noise
    >>> from pinoise.noise.objectives import Outcome
    >>> noise = Noise(torch.tensor([[3.0, 4.0], [0.0, 5.0]]), torch.ones(2, 2))
    >>> Paper(penalty=0.5)(lambda theta=True, psi=1.0: Outcome(torch.tensor([1.0, 3.0]), noise))[0]
    tensor(2.1000)
    """

    def __init__(self, *, penalty: float = 0.0) -> None:
        super().__init__()
        self.penalty = penalty

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the penalised mean loss, and the loss of every sample."""
        losses, noise, drew = look()
        loss = losses.mean()
        if self.penalty and noise is not None:
            loss = loss + self.penalty * inverse_norm(noise.epsilon, drew)
        return loss, losses
