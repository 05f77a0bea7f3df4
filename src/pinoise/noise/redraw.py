"""Noise of columns with several features: they take the values of other rows, as often as σ says."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from pinoise.noise.columns import Columns

MIXED_SHARE = 0.25
"""How often mixed noise transplants, at σ = r, the value of a column in which a row and its neighbour differ.

Twice the size of neighbours' differences, as numbers have it, would be more often than always: σ of the column would
then get no gradient. A quarter is better on one table of categories and about as good on nine others
(``benchmarks/category_share.py``)."""


class Transplants(NamedTuple):
    """Rows of the bank and their neighbours, whose differences are transplanted to samples."""

    pairs: Tensor  # (times · m, 2): a row and its neighbour for every draw and sample
    size: Tensor  # (…, c): σ/r of every column
    stays: Tensor | None  # (times, m, 1): which samples take them; None is all


def redrawn(
    columns: Columns,
    x: Tensor,
    bank: Tensor,
    variance: Tensor,
    transplants: Transplants | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return samples (times, m, d) whose columns of several features are those of other rows.

    Each column is that of a random row, with probability σ²/2. Transplanted differences change what differs between a
    row and its neighbour, to what the neighbour has, with probability (σ/r)²/2; those of mixed noise, (σ/r)²/4.

    Args:
        columns: which features belong together.
        x: samples (times, m, d).
        bank: rows to take columns from, shape (n, d).
        variance: σ² of every column, shape (…, c).
        transplants: the differences to take instead, for mixed noise in the samples that stay.
        generator: where random numbers come from; None is torch's global generator.

    >>> columns, bank = Columns(2, [(0, 2)]), torch.tensor([[0.0, 1.0]])
    >>> redrawn(columns, torch.tensor([[[1.0, 0.0]]]), bank, torch.tensor([2.0]))
    tensor([[[0., 1.]]])
    """
    probability = variance / 2
    other = columns.from_rows(bank, x, generator)
    if transplants is not None:
        row, neighbour = (bank[part].reshape(x.shape) for part in transplants.pairs.unbind(1))
        differs = columns.largest((row != neighbour).to(x.dtype))
        if transplants.stays is None:
            probability, other = differs * transplants.size.square() / 2, neighbour
        else:
            often = differs * transplants.size.square() * MIXED_SHARE
            probability = torch.where(transplants.stays, often, probability)
            other = torch.where(transplants.stays, neighbour, other)
    return columns.taken(x, other.to(x.dtype), probability.clamp_max(1), generator)
