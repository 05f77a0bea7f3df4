"""A method from a loss alone: any function that compares the projections of two views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods.base import Method, two_views
from pinoise.views import Batch


class PairLoss(Method):
    """A user's own loss on the projections of two views, which pass the encoder together.

    Both views pass the same encoder with gradient, so π-noise in either of them learns.

    Args:
        encoder: f_θ.
        head: the projection head.
        loss: from two projections (m, dim) to the loss of every sample (m,).

    >>> from pinoise.networks import MLPEncoder, ProjectionHead
    >>> def distance(first, second):
    ...     return (first - second).square().sum(dim=1)
    >>> method = PairLoss(MLPEncoder((3,), hidden=4, out_features=2), ProjectionHead(2), distance)
    >>> batch = Batch(torch.ones(5, 3), torch.arange(5))
    >>> method([batch, batch]).shape
    torch.Size([5])
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(encoder)
        self.head = head
        self.loss = loss

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        z = self.head(torch.cat(self.encode(two_views(views, method="of a loss function"))))  # (2m, dim)
        losses = self.loss(*z.chunk(2))
        if losses.shape != (len(views[0].x),):
            raise UserError(
                f"the loss function returned shape {tuple(losses.shape)} for {len(views[0].x)} samples: "
                "it must return one loss per sample."
            )
        return losses
