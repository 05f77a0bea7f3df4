"""What a user gets for a sample: the learned representation, alone or joined with the sample itself."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import EMBEDDINGS, EmbeddingName
from pinoise.errors import unknown_choice

LEARNED_SHARE = 0.3
"""The length of the learned part of a joined embedding, where the other part has length about 1.

Distances between neighbours are small in the learned part, and large in x when it has many features: at equal length
the learned part alone would decide who is near. Chosen on validation rows (``benchmarks/choices.py``), so that no set
loses much and most gain. Probes that standardise their input do not depend on it."""


def join(x: Tensor, z: Tensor) -> Tensor:
    """[x/√d ; 0.3 z/‖z‖]: nothing of x is lost, and the learned part cannot drown it.

    Args:
        x: standardised samples, shape (m, *shape).
        z: their learned representation, shape (m, o).

    >>> join(torch.ones(1, 4), torch.tensor([[3.0, 4.0]]))
    tensor([[0.5000, 0.5000, 0.5000, 0.5000, 0.1800, 0.2400]])
    """
    flat = x.flatten(1)
    return torch.cat([flat / math.sqrt(flat.shape[1]), LEARNED_SHARE * F.normalize(z, dim=1)], dim=1)


class Embedding(nn.Module):
    """Standardised samples in, embedding out: ``learned`` is f(x), ``joined`` loses nothing of x beside it.

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
