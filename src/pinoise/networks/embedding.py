"""What users get of f_θ: the embedding of a sample, learned alone or joined with the sample itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import EMBEDDINGS, EmbeddingName
from pinoise.errors import unknown_choice
from pinoise.modes import evaluating

LEARNED_WEIGHT = 0.5
"""The size of the learned block of a joined embedding, as a share of the raw block's. The variances are the squares.

A larger weight lets the learned block decide which samples are near. That helps on most data and harms where rows are
few (``benchmarks/blocks.py``). Both blocks in units of the raw features suit plain classifiers, whose defaults are made
for standardised columns."""


class Blocks(NamedTuple):
    """The units of an embedding's learned block over the training rows."""

    centre: Tensor  # (o,): the mean of z/‖z‖
    factor: Tensor  # (): what makes its total variance that of the raw block


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
    def variance(self) -> Tensor:
        """The variance summed over columns, 0 if it is rounding."""
        length = self.square / self.count  # the mean squared length
        total = length - self.mean.square().sum()
        return torch.where(total > _ROUNDING * length, total, 0)


_SHORTEST = 1e-12  # a row of no length is divided by this
_ROUNDING = 1e-9  # a variance below this share of the mean squared length is none


def measure_blocks(batches: Iterable[tuple[Tensor, Tensor]]) -> Blocks:
    """Measure the units of the learned block on batches of training rows. A block that does not vary gets factor 0.

    Args:
        batches: of the raw block, (m, d), and of the learned representation, (m, o).

    >>> x, z = torch.tensor([[1.0, 2.0], [-1.0, -2.0]]), torch.tensor([[0.0, 3.0], [4.0, 0.0]])
    >>> measure_blocks([(x, z)])  # a total variance of 5 beside one of 1/2
    Blocks(centre=tensor([0.5000, 0.5000]), factor=tensor(3.1623))
    """
    raw, learned = _Moments(), _Moments()
    for x, z in batches:
        raw.add(x)
        learned.add(F.normalize(z, dim=1))
    varies = learned.variance > 0
    factor = torch.where(varies, raw.variance / torch.where(varies, learned.variance, 1), 0).sqrt()
    return Blocks(learned.mean.float(), factor.float())


def raw_block(x: Tensor, *, unit_rows: bool) -> Tensor:
    """Return standardised samples as rows. If samples are rows of length 1, they get one length again around the mean.

    Otherwise an empty text would be nearer to most texts than any other text.

    >>> raw_block(torch.tensor([[[3.0, 4.0]]]), unit_rows=True)
    tensor([[0.8485, 1.1314]])
    """
    flat = x.flatten(1)
    return F.normalize(flat, dim=1, eps=_SHORTEST) * math.sqrt(flat.shape[1]) if unit_rows else flat


class Raw(nn.Module):
    """From standardised samples to the raw features that embeddings are compared with."""

    def __init__(self, *, unit_rows: bool) -> None:
        super().__init__()
        self.unit_rows = unit_rows

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of samples (m, *shape), shape (m, d)."""
        return raw_block(x, unit_rows=self.unit_rows)


class Embedding(nn.Module):
    """From standardised samples to embeddings in the units of the samples.

    ``learned`` is the representation z = f(x), of length 1, around its mean, and of the same total variance over the
    training rows as the samples. ``joined`` is [x ; w z] with w = 0.5: the samples lose nothing, and the learned block
    drowns in no number of features.

    Args:
        encoder: f_θ.
        name: ``"joined"`` or ``"learned"``.
        blocks: the units of the learned block.
        unit_rows: whether the data is rows of length 1, such as word counts.

    >>> x = torch.randn(50, 3)
    >>> embedded = Embedding.measured(nn.Linear(3, 2), [x], name="joined")(x)
    >>> variance = embedded.var(dim=0, correction=0)
    >>> embedded.shape, round((variance[3:].sum() / variance[:3].sum()).item(), 4)
    (torch.Size([50, 5]), 0.25)
    """

    centre: Tensor
    factor: Tensor

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
        """Return an embedding in the units of training rows, given in batches (m, *shape)."""
        with torch.no_grad(), evaluating(encoder):
            blocks = measure_blocks((raw_block(x, unit_rows=unit_rows), encoder(x)) for x in batches)
        return cls(encoder, name=name, blocks=blocks, unit_rows=unit_rows)

    @property
    def blocks(self) -> Blocks:
        """The units of the learned block."""
        return Blocks(self.centre, self.factor)

    def column_names(self, features: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the embedding's columns: raw ones have those of the features, learned ones are numbered.

        >>> embedding = Embedding(nn.Linear(2, 1), name="joined", blocks=Blocks(torch.zeros(1), torch.ones(())))
        >>> embedding.column_names(["age", "income"]), embedding.column_names(["age", "pinda0"])
        (('age', 'income', 'pinda0'), ('age', 'pinda0', 'pinda_0'))
        """
        raw = tuple(features) if self.name == "joined" else ()
        width = cast(int, self.encoder.out_features)
        taken, prefix = set(raw), "pinda"
        while any(f"{prefix}{i}" in taken for i in range(width)):  # of an embedding that is embedded again
            prefix += "_"
        return (*raw, *(f"{prefix}{i}" for i in range(width)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedding of samples (m, *shape), shape (m, d + o) or (m, o)."""
        z = self.learned(x)
        return z if self.name == "learned" else torch.cat([raw_block(x, unit_rows=self.unit_rows), z], dim=1)

    def learned(self, x: Tensor) -> Tensor:
        """Return the learned block of the embedding of samples (m, *shape), shape (m, o)."""
        z = self.factor * (F.normalize(self.encoder(x), dim=1) - self.centre)
        return z if self.name == "learned" else LEARNED_WEIGHT * z

    def raw_factor(self, x: Tensor) -> Tensor:
        """Return what multiplies standardised samples (m, *shape) in the raw block, shape (m, 1).

        >>> embedding = Embedding(nn.Linear(2, 1), name="joined", blocks=Blocks(torch.zeros(1), torch.ones(())))
        >>> embedding.raw_factor(torch.tensor([[3.0, 4.0]]))
        tensor([[1.]])
        """
        flat = x.flatten(1)
        if not self.unit_rows:
            return flat.new_ones(len(flat), 1)
        lengths: Tensor = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
        return math.sqrt(flat.shape[1]) * lengths.clamp_min(_SHORTEST).reciprocal()
