"""Heads after the encoder: projections, predictors, and DINO's prototypes."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.errors import UserError
from pinoise.networks.linear import Linear, linear

HIDDEN = 256  # the width of a head's hidden layers

PROJECTION = 128  # the width of a projection

PROTOTYPES = 1024  # the number of prototypes that DINO's student and teacher score


class ProjectionHead(nn.Sequential):
    """The paper's projection head on the learned representation: a hidden layer with ReLU, then a linear layer.

    >>> import torch
    >>> ProjectionHead(4, hidden=8, out_features=2)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features: int, *, hidden: int = HIDDEN, out_features: int = PROJECTION) -> None:
        _check_sizes(hidden=hidden, out_features=out_features)
        super().__init__(Linear(in_features, hidden), nn.ReLU(inplace=True), Linear(hidden, out_features))
        self.out_features = out_features


class BatchNormHead(nn.Sequential):
    """BYOL's projection head: a hidden layer with batch normalisation and ReLU, then a linear layer.

    >>> import torch
    >>> BatchNormHead(4, hidden=8, out_features=2)(torch.randn(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features: int, *, hidden: int = HIDDEN, out_features: int = PROJECTION) -> None:
        _check_sizes(hidden=hidden, out_features=out_features)
        super().__init__(*_normalised_layer(in_features, hidden), Linear(hidden, out_features))
        self.out_features = out_features


class PredictionHead(BatchNormHead):
    """A predictor with equal input and output width. By default its hidden layer has a quarter of that width.

    >>> import torch
    >>> PredictionHead(8)(torch.randn(5, 8)).shape
    torch.Size([5, 8])
    """

    def __init__(self, features: int, *, hidden: int | None = None) -> None:
        super().__init__(features, hidden=max(features // 4, 1) if hidden is None else hidden, out_features=features)


class SimSiamHead(nn.Sequential):
    """SimSiam's projection head: three layers with batch normalisation, the last without a learned scale and shift.

    >>> import torch
    >>> SimSiamHead(4, hidden=8, out_features=2)(torch.randn(5, 4)).mean(dim=0).abs().max().item() < 1e-6
    True
    """

    def __init__(self, in_features: int, *, hidden: int = HIDDEN, out_features: int = PROJECTION) -> None:
        _check_sizes(hidden=hidden, out_features=out_features)
        super().__init__(
            *_normalised_layer(in_features, hidden),
            *_normalised_layer(hidden, hidden),
            Linear(hidden, out_features, bias=False),
            nn.BatchNorm1d(out_features, affine=False),
        )
        self.out_features = out_features


class PrototypeHead(nn.Module):
    """DINO's head: three layers with GELU, then the cosine of their output with every prototype.

    A prototype is a direction: the length of its weight vector has no effect and is never learned.

    >>> import torch
    >>> head = PrototypeHead(4, hidden=8, bottleneck=3, prototypes=10)
    >>> scores = head(torch.randn(5, 4))
    >>> scores.shape, bool((scores.abs() <= 1.0001).all())
    (torch.Size([5, 10]), True)
    """

    def __init__(
        self, in_features: int, *, hidden: int = HIDDEN, bottleneck: int = PROJECTION, prototypes: int = PROTOTYPES
    ) -> None:
        super().__init__()
        _check_sizes(hidden=hidden, bottleneck=bottleneck, prototypes=prototypes)
        self.layers = nn.Sequential(
            Linear(in_features, hidden),
            nn.GELU(),
            Linear(hidden, hidden),
            nn.GELU(),
            Linear(hidden, bottleneck),
        )
        self.prototypes = Linear(bottleneck, prototypes, bias=False)
        self.out_features = prototypes

    def forward(self, h: Tensor) -> Tensor:
        """Return the scores (m, prototypes) of features (m, in_features), each between −1 and 1."""
        return linear(F.normalize(self.layers(h), dim=1), F.normalize(self.prototypes.weight, dim=1))


def _normalised_layer(in_features: int, out_features: int) -> tuple[nn.Module, ...]:
    # No bias: batch normalisation would subtract it, and has its own shift.
    return Linear(in_features, out_features, bias=False), nn.BatchNorm1d(out_features), nn.ReLU(inplace=True)


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise UserError(f"{name} of the head is {size}: it must be at least 1.")
