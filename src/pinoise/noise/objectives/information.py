"""Noise that says the most about the task: ψ maximises mutual information while θ minimises the loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.noise.objectives.base import Look, Objective


class Information(Objective):
    """min over θ of mean ℓ(x, ε), max over ψ of the exact mutual information between task and noise.

    The information needs the losses of each sample under several draws, so a step costs that many looks more.

    Args:
        measure: from losses (m, K) to the information of every sample (m,), with gradient.
        draws: K.
    """

    def __init__(self, measure: Callable[[Tensor], Tensor], *, draws: int = 4) -> None:
        super().__init__()
        if draws < 2:
            raise UserError(f"draws is {draws}: the information in noise needs at least 2 draws of it.")
        self._measure = measure
        self.draws = draws

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the mean loss minus the mean information, and the loss of every sample."""
        losses = look(psi=0.0).losses
        under_draws = torch.stack([look(theta=False).losses for _ in range(self.draws)], dim=1)  # (m, K)
        return losses.mean() - self._measure(under_draws).mean(), losses
