"""BYOL (Grill et al., 2020, arXiv:2006.07733): one view predicts a slowly moving network's output for the other.

Gradient reaches π-noise through the online branch alone: the target network runs without gradient. Each view passes
both branches, so noise in either view learns.

Both views pass each network as one batch, as in ``Method.encode``. The original passes one after the other, so that its
batch normalisation has the statistics of each view alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from pinoise.choices import Share, within
from pinoise.methods.base import PredictiveMethod, two_views
from pinoise.methods.momentum import Momentum, cosine_momentum
from pinoise.methods.simsiam import negative_cosine
from pinoise.networks import BatchNormHead, PredictionHead
from pinoise.views import Batch, Site


def byol_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """2 − 2 cos(p, z) of every sample: the squared distance of p and z, both (m, dim), after normalisation.

    >>> byol_loss(torch.eye(2), torch.tensor([[2.0, 0.0], [1.0, 0.0]]))
    tensor([0., 2.])
    """
    return 2 + 2 * negative_cosine(prediction, target)


class BYOL(PredictiveMethod):
    """2 − 2 cos of every view's prediction and the other view's target, summed over both directions.

    Args:
        encoder: f_θ.
        head: the projection head, with the integer attribute ``out_features``.
        predictor: a network from projections to projections.
        momentum: the share of the target network that is kept at the first step; it rises to 1 along a cosine.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, predictor: nn.Module, *, momentum: Share = 0.996) -> None:
        super().__init__(encoder, head, predictor)
        self.momentum = within("momentum", momentum, Share)
        self.target_network = Momentum(encoder, head)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with a head and a predictor that normalise over the batch."""
        head = site.projection_head(BatchNormHead)
        return cls(site.encoder, head, PredictionHead(site.head_features, hidden=site.head_hidden), **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        first, second = two_views(views, method="byol")
        m = len(first.x)
        prediction = self.predictor(self.project(views))  # (2m, dim)
        target = self.target_network(torch.cat([first.x, second.x]))  # (2m, dim)
        return byol_loss(prediction, target.roll(m, dims=0)).view(2, m).sum(dim=0)

    def after_step(self, step: int, steps: int) -> None:
        """Move the target network towards the online network, more slowly at every step."""
        momentum = cosine_momentum(step, steps, self.momentum)
        self.target_network.follow(self.encoder, self.head, momentum=momentum)
