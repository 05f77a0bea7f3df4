"""A loss, gradients or weights that are no numbers any more, and the sentence about them."""

from __future__ import annotations

import torch

from pinoise.errors import UserError
from pinoise.training.config import TrainingSettings
from pinoise.training.objectives import ContrastiveModel


class DivergedError(UserError):
    """The loss or its gradient became nan or infinite."""


@torch.no_grad()
def broken_weights(model: torch.nn.Module) -> list[str]:
    """Return the names of the weights that contain nan or infinite numbers.

    >>> layer = torch.nn.Linear(2, 1)
    >>> _ = layer.bias.data.fill_(math.nan)
    >>> broken_weights(layer)
    ['bias']
    """
    names, weights = zip(*model.named_parameters(), strict=True)
    finite = torch.stack([torch.isfinite(weight).all() for weight in weights]).tolist()  # waits for the device once
    return [name for name, sound in zip(names, finite, strict=True) if not sound]


def has_broken_moments(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a moment is nan or infinite. The square of a gradient above 2e19 is, although the weights stay finite."""
    moments = [tensor for state in optimizer.state.values() for tensor in state.values()]
    return not all(torch.stack([torch.isfinite(moment).all() for moment in moments]).tolist())


def diverged(
    model: ContrastiveModel, step: int, settings: TrainingSettings, *, what: str = "the loss"
) -> DivergedError:
    """Return the error for a loss, gradients or weights that are no numbers."""
    broken = broken_weights(model)
    noise_broke = broken and all(name.startswith("pairing.") for name in broken)
    return DivergedError(
        f"{what} became nan or infinite by step {step}"
        f"{'; the noise generator failed first' if noise_broke else ''}: "
        f"lower the learning rate (now {settings.learning_rate:g}) or raise the temperature."
    )
