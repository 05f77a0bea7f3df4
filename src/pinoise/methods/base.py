"""The contract of a contrastive method: views in, one loss per sample out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pinoise.views import Batch


class Method(nn.Module):
    """ℓ(x; θ): an encoder, whatever else the method trains, and the loss of every sample.

    Args:
        encoder: f_θ, a module with the integer attribute ``out_features``.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        raise NotImplementedError

    def encode(self, views: Sequence[Batch]) -> list[Tensor]:
        """Return f_θ of every view: one concatenated pass for those whose features are not known yet."""
        fresh = [view.x for view in views if view.features is None]
        encoded = iter(self.encoder(torch.cat(fresh)).split([len(x) for x in fresh]) if fresh else ())
        return [next(encoded) if view.features is None else view.features for view in views]

    def embed(self, x: Tensor) -> Tensor:
        """Return the representation of samples as they are, shape (m, out_features)."""
        representation: Tensor = self.encoder(x)
        return representation

    def guessing_loss(self, batch_size: int) -> float | None:
        """The loss where no sample is told from another, None for a method whose loss has no such value."""
        return None

    def after_step(self) -> None:
        """Update what follows the optimiser rather than the gradient, such as a momentum encoder."""
