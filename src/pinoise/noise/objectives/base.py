"""The contract of an objective: look at a batch as often as needed, return the scalar that is minimised."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor, nn

from pinoise.noise.module import Noise


class Outcome(NamedTuple):
    """What one look at a batch shows: its losses under fresh views, and the noise in those views."""

    losses: Tensor  # (m,): ℓ of every sample
    noise: Noise | None = None  # of all views together, along the batch; None without learned noise
    drew: Tensor | None = None  # which entries of the noise were drawn; all of them if None


class Look(Protocol):
    """Draws views of the batch and compares them, anew at every call."""

    def __call__(self, *, theta: bool = True, psi: float = 1.0) -> Outcome:
        """Return the losses, whose gradient reaches θ if asked, and ψ multiplied by a factor."""
        ...


class Objective(nn.Module):
    """What θ and ψ optimise. Subclasses implement ``forward``."""

    learns_noise = True

    def forward(self, look: Look) -> tuple[Tensor, Tensor]:
        """Return the scalar to minimise and the loss of every sample (m,), for the record."""
        raise NotImplementedError
