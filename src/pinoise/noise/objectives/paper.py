"""The paper's objective: θ and ψ both minimise the contrastive loss."""

from __future__ import annotations

from torch import Tensor, nn

from pinoise.noise.penalty import inverse_norm


class Paper(nn.Module):
    """min over θ and ψ of mean ℓ(x, ε) + λ / mean‖ε‖₂ (Eq. 17 and the paper's penalty on vision data).

    With λ = 0, as the paper has it on vectors, σ tends to 0: less noise makes the two views easier to match.

    >>> import torch
    >>> Paper(penalty=0.5)(torch.tensor([1.0, 3.0]), torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    tensor(2.1000)
    """

    learns_noise = True

    def __init__(self, *, penalty: float = 0.0) -> None:
        super().__init__()
        self.penalty = penalty

    def forward(self, losses: Tensor, noise: Tensor | None = None, drew: Tensor | None = None) -> Tensor:
        """Return the scalar to minimise from per-sample losses (m,) and the noise behind them (m, *shape)."""
        loss = losses.mean()
        if self.penalty and noise is not None:
            loss = loss + self.penalty * inverse_norm(noise, drew)
        return loss
