"""Columns that became several features, such as a category, a text or a date.

They move as a whole, never by a fraction: they take the values of other rows, as often as σ says.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from pinoise.errors import UserError

Span = tuple[int, int]
"""The first feature of a column, and the one after its last."""


class Columns(nn.Module):
    """Which features belong together. A number is a column of one feature; the spans are columns of several.

    Noise has one σ for each column. A number moves by σ n. A column of several features takes the values of another
    row instead, with the probability that gives both the same expected square: two independent rows differ by 2 in
    units of the column's variance, so it is σ²/2.

    Args:
        features: the number of features.
        spans: the columns of several features, in order and apart from each other.

    >>> columns = Columns(4, [(1, 3)])  # a number, a category of two values, a number
    >>> columns.number, columns.several.tolist(), columns.spread(torch.tensor([5.0, 6.0, 7.0])).tolist()
    (3, [False, True, True, False], [5.0, 6.0, 6.0, 7.0])
    """

    of_feature: Tensor  # (d,): the column of every feature
    sizes: Tensor  # (c,): the number of features of every column
    several: Tensor  # (d,): whether a feature is one of several of its column

    def __init__(self, features: int, spans: Sequence[Span]) -> None:
        super().__init__()
        several = torch.zeros(features, dtype=torch.bool)
        starts = torch.ones(features, dtype=torch.bool)
        end = 0
        for start, stop in spans:
            if not end <= start < stop <= features:
                raise UserError(f"the column of the features {start} to {stop - 1} does not fit {features} features.")
            several[start:stop] = True
            starts[start + 1 : stop] = False
            end = stop
        # The spans are stored with the units of the data, so they need no place in the state.
        self.register_buffer("several", several, persistent=False)
        self.register_buffer("of_feature", starts.cumsum(0) - 1, persistent=False)
        self.register_buffer("sizes", torch.bincount(self.of_feature).float(), persistent=False)

    @property
    def number(self) -> int:
        """The number of columns."""
        return len(self.sizes)

    def spread(self, values: Tensor) -> Tensor:
        """Return for every feature the value of its column, from (…, c) to (…, d)."""
        return values.index_select(-1, self.of_feature)

    def means(self, values: Tensor) -> Tensor:
        """Return the mean over the features of every column, from (…, d) to (…, c).

        >>> Columns(3, [(0, 2)]).means(torch.tensor([1.0, 3.0, 5.0]))
        tensor([2., 5.])
        """
        return self._sums(values) / self.sizes

    def largest(self, values: Tensor) -> Tensor:
        """Return the largest value of every column, from (…, d) to (…, c): its σ, as dead features have none.

        >>> Columns(3, [(0, 2)]).largest(torch.tensor([0.0, 3.0, 5.0]))
        tensor([3., 5.])
        """
        index = self.of_feature.expand(values.shape)
        return values.new_zeros(*values.shape[:-1], self.number).scatter_reduce(
            -1, index, values, "amax", include_self=False
        )

    def lengths(self, values: Tensor) -> Tensor:
        """Return the root of the sum of squares over the features of every column, from (…, d) to (…, c).

        >>> Columns(3, [(0, 2)]).lengths(torch.tensor([3.0, 4.0, -5.0]))
        tensor([5., 5.])
        """
        return self._sums(values.square()).sqrt()

    def _sums(self, values: Tensor) -> Tensor:
        return values.new_zeros(*values.shape[:-1], self.number).index_add(-1, self.of_feature, values)

    def from_rows(self, bank: Tensor, like: Tensor, generator: Generator | None = None) -> Tensor:
        """Return samples (…, d) in which every column is that of a row of the bank, each drawn on its own.

        >>> bank = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> Columns(2, [(0, 2)]).from_rows(bank, torch.zeros(50, 2)).sum(dim=1).unique()
        tensor([1.])
        """
        size = (*like.shape[:-1], self.number)
        rows = torch.randint(len(bank), size, device=like.device, generator=generator)
        return bank.gather(0, self.spread(rows).flatten(0, -2)).reshape(like.shape)

    def taken(self, x: Tensor, other: Tensor, probability: Tensor, generator: Generator | None = None) -> Tensor:
        """Return x with columns of several features taken from ``other``, each with its probability (…, c).

        The gradient of a probability p is that of x + p (other − x).

        >>> x, other = torch.zeros(1, 3), torch.ones(1, 3)
        >>> Columns(3, [(1, 3)]).taken(x, other, torch.tensor([1.0, 1.0]))
        tensor([[0., 1., 1.]])
        """
        p = probability.expand(*x.shape[:-1], self.number)
        taken = (torch.rand(p.shape, dtype=p.dtype, device=p.device, generator=generator) < p).to(p.dtype)
        weight = self.spread(taken + (p - p.detach()))
        return torch.where(self.several, x + weight * (other - x), x)

    def forward(self, x: Tensor, moved: Tensor) -> Tensor:
        """Return the numbers of the moved samples beside the columns of several features of x."""
        return torch.where(self.several, x, moved)


MIXED_SHARE = 0.25
"""How often mixed noise transplants, at σ = r, the value of a column in which a row and its neighbour differ.

Twice the size of neighbours' differences, as numbers have it, would be more often than always: σ of the column would
then get no gradient. A quarter is better on one table of categories and about as good on nine others
(``benchmarks/category_share.py``)."""


def check_columns(columns: Columns | None, shape: tuple[int, ...], *, has_donors: bool) -> None:
    """Refuse columns of other features than those of a sample, and columns without rows to take them from."""
    if columns is None:
        return
    if shape != (len(columns.of_feature),):
        raise UserError(f"columns are of {len(columns.of_feature)} features: samples have shape {shape}.")
    if not has_donors:
        raise UserError("columns of several features take the values of other rows: give a support, or donors.")
