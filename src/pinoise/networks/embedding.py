"""The embedding of a sample: its learned representation, alone or joined with the sample itself."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import EMBEDDINGS, EmbeddingName
from pinoise.errors import unknown_choice

LEARNED_SHARE = 0.3
"""The length of the learned part of a joined embedding. The other part has length about 1.

Distances between neighbours are small in the learned part, and large in x when x has many features. At equal length
the learned part alone would decide which samples are near. The value was chosen on validation rows
(``benchmarks/choices.py``): most data sets gain, and none loses much. Probes that standardise their input do not depend
on it."""


def join(x: Tensor, z: Tensor) -> Tensor:
    """[x/√d ; 0.3 z/‖z‖]: it keeps all of x, and the learned part cannot dominate it.

    Args:
        x: standardised samples, shape (m, *shape).
        z: their learned representation, shape (m, o).

    >>> join(torch.ones(1, 4), torch.tensor([[3.0, 4.0]]))
    tensor([[0.5000, 0.5000, 0.5000, 0.5000, 0.1800, 0.2400]])
    """
    flat = x.flatten(1)
    return torch.cat([flat / math.sqrt(flat.shape[1]), LEARNED_SHARE * F.normalize(z, dim=1)], dim=1)


class Embedding(nn.Module):
    """From standardised samples to embeddings: ``learned`` is f(x), ``joined`` puts x beside it (``join``).

    Args:
        encoder: f_θ.
        name: ``"joined"`` or ``"learned"``.

    >>> embedding = Embedding(nn.Linear(3, 2), name="joined")
    >>> embedding(torch.zeros(4, 3)).shape
    torch.Size([4, 5])
    """

    def __init__(self, encoder: nn.Module, *, name: EmbeddingName) -> None:
        super().__init__()
        if name not in EMBEDDINGS:
            raise unknown_choice("embedding", name, EMBEDDINGS)
        self.encoder = encoder
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedding of samples (m, *shape), shape (m, d + o) or (m, o)."""
        z: Tensor = self.encoder(x)
        return join(x, z) if self.name == "joined" else z
