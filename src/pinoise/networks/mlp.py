"""Networks for vectors: the encoder f_θ and the projection head."""

from __future__ import annotations

import math

from torch import Tensor, nn

from pinoise.errors import UserError


class MLPEncoder(nn.Module):
    """The paper's backbone for vectors: three fully connected layers d→1024→1024→256.

    A sample of any shape is flattened.

    >>> import torch
    >>> encoder = MLPEncoder((2, 3), hidden=8, out_features=4)
    >>> encoder(torch.zeros(5, 2, 3)).shape, encoder.out_features
    (torch.Size([5, 4]), 4)
    """

    def __init__(self, shape: tuple[int, ...], *, hidden: int = 1024, out_features: int = 256) -> None:
        super().__init__()
        for name, size in (("hidden", hidden), ("out_features", out_features)):
            if size < 1:
                raise UserError(f"{name} of the encoder is {size}: it must be at least 1.")
        self.shape = shape
        self.out_features = out_features
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(shape), hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, out_features),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation (m, out_features) of samples (m, *shape)."""
        features: Tensor = self.layers(x)
        return features


class ProjectionHead(nn.Sequential):
    """The paper's head: a hidden layer with ReLU and a linear layer; its input is the learned representation.

    >>> import torch
    >>> ProjectionHead(4, hidden=8, out_features=2)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features: int, *, hidden: int = 256, out_features: int = 128) -> None:
        super().__init__(nn.Linear(in_features, hidden), nn.ReLU(), nn.Linear(hidden, out_features))
        self.out_features = out_features
