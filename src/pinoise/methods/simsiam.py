"""SimSiam (Chen and He, 2021, arXiv:2011.10566): one view predicts the other, which is a constant.

Gradient reaches π-noise through the branch with the predictor alone: the other branch is the same network behind a
stop-gradient. Each view passes both branches, so noise in either view learns.

Both views pass encoder, head and predictor as one batch, as in ``Method.encode``. The original passes one after the
other, so that its batch normalisation has the statistics of each view alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from torch import Tensor
from torch.nn import functional as F

from pinoise.methods.base import PredictiveMethod, full_precision, two_views
from pinoise.networks import PredictionHead, SimSiamHead
from pinoise.views import Batch, Site


def negative_cosine(prediction: Tensor, projection: Tensor) -> Tensor:
    """D(p, z) = −cos(p, z), Eq. 1 of SimSiam.

    Args:
        prediction: p, shape (m, dim).
        projection: z, shape (m, dim).

    Returns:
        The loss of every sample, shape (m,).

    >>> import torch
    >>> negative_cosine(torch.eye(2), torch.tensor([[2.0, 0.0], [0.0, -1.0]]))
    tensor([-1.,  1.])
    """
    with full_precision(prediction, projection) as (prediction, projection):
        return -F.cosine_similarity(prediction, projection, dim=1)


class SimSiam(PredictiveMethod):
    """½ D(p₁, z₂) + ½ D(p₂, z₁) with z held constant.

    Args:
        encoder: f_θ.
        head: the projection head, with the integer attribute ``out_features``.
        predictor: a network from projections to projections, through a bottleneck.
    """

    least_loss = -1.0

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with SimSiam's own head and a predictor with a bottleneck."""
        return cls(site.encoder, site.projection_head(SimSiamHead), PredictionHead(site.head_features), **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        z = self.project(two_views(views, method="simsiam"))  # (2m, dim)
        m = len(z) // 2
        return negative_cosine(self.predictor(z), z.detach().roll(m, dims=0)).view(2, m).mean(dim=0)
