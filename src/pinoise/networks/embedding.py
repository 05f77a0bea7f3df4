"""The embedding of a sample: its learned representation, alone or joined with the sample itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import EMBEDDINGS, EmbeddingName
from pinoise.errors import unknown_choice
from pinoise.networks.blocks import evaluating

TOTAL_VARIANCE = 32.0
"""The variance of an embedding over the training rows, summed over its columns.

Plain classifiers take an embedding as it is, so its size decides how strongly their defaults regularise. This size
suits scikit-learn's logistic regression on validation rows; 8 to 128 are within half a point
(``benchmarks/blocks.py``)."""

LEARNED_WEIGHT = 0.5
"""The size of the learned block of a joined embedding, as a share of the raw block's. The variances are the squares.

A larger weight lets the learned block decide which samples are near. That helps on most data and harms where rows are
few (``benchmarks/blocks.py``)."""


class Blocks(NamedTuple):
    """The units of an embedding's two blocks: what makes the total variance of each 1 over the training rows."""

    centre: Tensor  # (o,): the mean of z/‖z‖
    learned: Tensor  # (): the factor on the learned block
    raw: Tensor  # (): the factor on the raw block


class _Moments:
    """The mean and the total variance of rows that come in batches."""

    def __init__(self) -> None:
        self.count, self.sum, self.square = 0, torch.zeros(()), torch.zeros(())

    def add(self, rows: Tensor) -> None:
        rows = rows.double()
        self.count += len(rows)
        self.sum, self.square = self.sum + rows.sum(dim=0), self.square + rows.square().sum()

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count

    @property
    def factor(self) -> Tensor:
        """What makes the total variance 1; 0 for rows that do not vary."""
        length = self.square / self.count  # the mean squared length
        total = length - self.mean.square().sum()
        return torch.where(total > _ROUNDING * length, total, math.inf).rsqrt()


_ROUNDING = 1e-9  # a variance below this share of the mean squared length is none


def measure_blocks(batches: Iterable[tuple[Tensor, Tensor]]) -> Blocks:
    """Measure the units of both blocks on batches of training rows.

    Args:
        batches: of the raw block, (m, d), and of the learned representation, (m, o).

    >>> x, z = torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.tensor([[0.0, 3.0], [4.0, 0.0]])
    >>> blocks = measure_blocks([(x, z)])
    >>> blocks.centre, round(float(blocks.raw) ** -2, 4), round(float(blocks.learned) ** -2, 4)
    (tensor([0.5000, 0.5000]), 5.0, 0.5)
    """
    raw, learned = _Moments(), _Moments()
    for x, z in batches:
        raw.add(x)
        learned.add(F.normalize(z, dim=1))
    return Blocks(learned.mean.float(), learned.factor.float(), raw.factor.float())


def raw_block(x: Tensor, *, unit_rows: bool) -> Tensor:
    """Return standardised samples as rows; where samples are rows of length 1, around the mean they get it again.

    Without that, an empty text is nearer to most texts than any other text.

    >>> raw_block(torch.tensor([[[3.0, 4.0]]]), unit_rows=True)
    tensor([[0.6000, 0.8000]])
    """
    flat = x.flatten(1)
    return F.normalize(flat, dim=1) if unit_rows else flat


class Raw(nn.Module):
    """From standardised samples to the raw features that embeddings are compared with."""

    def __init__(self, *, unit_rows: bool) -> None:
        super().__init__()
        self.unit_rows = unit_rows

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of samples (m, *shape), with about unit variance, shape (m, d)."""
        flat = raw_block(x, unit_rows=self.unit_rows)
        return flat * math.sqrt(flat.shape[1]) if self.unit_rows else flat


class Embedding(nn.Module):
    """From standardised samples to embeddings of total variance 32 over the training rows.

    ``learned`` is the representation z = f(x), of length 1 and around its mean. ``joined`` puts it beside the sample:
    √32 · [x ; w z] / √(1 + w²), with both blocks in units of their own total variance, so that neither drowns in the
    other, however many features there are. The weight w is 0.5.

    Args:
        encoder: f_θ.
        name: ``"joined"`` or ``"learned"``.
        blocks: the units of both blocks.
        unit_rows: whether the data is rows of length 1, such as word counts.

    >>> x = torch.randn(50, 3)
    >>> embedded = Embedding.measured(nn.Linear(3, 2), [x], name="joined")(x)
    >>> embedded.shape, round(embedded.var(dim=0, correction=0).sum().item(), 3)
    (torch.Size([50, 5]), 32.0)
    """

    centre: Tensor
    learned: Tensor
    raw: Tensor

    def __init__(self, encoder: nn.Module, *, name: EmbeddingName, blocks: Blocks, unit_rows: bool = False) -> None:
        super().__init__()
        if name not in EMBEDDINGS:
            raise unknown_choice("embedding", name, EMBEDDINGS)
        self.encoder = encoder
        self.name = name
        self.unit_rows = unit_rows
        for part, value in blocks._asdict().items():
            self.register_buffer(part, value)

    @classmethod
    def measured(
        cls, encoder: nn.Module, batches: Iterable[Tensor], *, name: EmbeddingName, unit_rows: bool = False
    ) -> Embedding:
        """Return an embedding whose blocks are in the units of batches of training rows, each (m, *shape)."""
        with torch.no_grad(), evaluating(encoder):
            blocks = measure_blocks((raw_block(x, unit_rows=unit_rows), encoder(x)) for x in batches)
        return cls(encoder, name=name, blocks=blocks, unit_rows=unit_rows)

    @property
    def blocks(self) -> Blocks:
        """The units of both blocks."""
        return Blocks(self.centre, self.learned, self.raw)

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedding of samples (m, *shape), shape (m, d + o) or (m, o)."""
        z = self.learned * (F.normalize(self.encoder(x), dim=1) - self.centre)
        if self.name == "learned":
            return math.sqrt(TOTAL_VARIANCE) * z
        size = math.sqrt(TOTAL_VARIANCE / (1 + LEARNED_WEIGHT**2))
        return size * torch.cat([self.raw * raw_block(x, unit_rows=self.unit_rows), LEARNED_WEIGHT * z], dim=1)
