"""The encoder f_θ for vectors."""

from __future__ import annotations

import math

from torch import Tensor, nn

from pinoise.choices import Size
from pinoise.errors import UserError
from pinoise.networks.linear import Linear

HIDDEN = 1024  # the width of fully connected layers in the paper


class MLPEncoder(nn.Module):
    """The paper's backbone for vectors: three fully connected layers d→1024→1024→256.

    Samples of any shape are flattened.

    >>> import torch
    >>> encoder = MLPEncoder((2, 3), hidden=8, out_features=4)
    >>> encoder(torch.zeros(5, 2, 3)).shape, encoder.out_features
    (torch.Size([5, 4]), 4)
    """

    def __init__(self, shape: tuple[int, ...], *, hidden: Size = HIDDEN, out_features: Size = 256) -> None:
        super().__init__()
        for name, size in (("hidden", hidden), ("out_features", out_features)):
            if size < 1:
                raise UserError(f"{name} of the encoder is {size}: it must be at least 1.")
        self.shape = shape
        self.hidden = hidden
        self.out_features = out_features
        self.layers = nn.Sequential(
            nn.Flatten(),
            Linear(math.prod(shape), hidden),
            nn.ReLU(inplace=True),
            Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            Linear(hidden, out_features),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation (m, out_features) of samples (m, *shape)."""
        features: Tensor = self.layers(x)
        return features
