"""What noise takes from other rows of the data: the nearest ones, searched exhaustively, and the values of columns.

Columns that became several features, such as a category, a text or a date, move as a whole, never by a fraction: they
take the values of other rows, as often as σ says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from pinoise.errors import UserError
from pinoise.networks.mlp import linear

# The most numbers held at once: distances, or rows to search for.
BLOCK_ENTRIES = 1 << 23

_EQUAL = 1e-6  # two rows are equal if their squared distance is below this share of their squared norms


class Nearest(NamedTuple):
    """The rows of a bank that are nearest to each query, in no particular order."""

    positions: Tensor  # (m, k)
    distances: Tensor  # (m, k): squared, minus the discount
    crowding: Tensor  # (m,): the mean squared distance to the k nearest before any discount


def nearest(
    queries: Tensor,
    bank: Tensor,
    *,
    k: int,
    skip: Tensor | None = None,
    skip_equal: bool = False,
    discount: Tensor | None = None,
    squares: Tensor | None = None,
) -> Nearest:
    """Find the k rows of the bank that are nearest to each query by squared Euclidean distance.

    Args:
        queries: shape (m, d).
        bank: shape (n, d).
        k: the number of rows to find.
        skip: for each query one position to leave out, such as its own, or −1 for none; shape (m,).
        skip_equal: whether to leave out rows that equal the query up to rounding.
        discount: the amount subtracted from the squared distances to each row of the bank; shape (n,).
        squares: the squared norms of the bank's rows, if they are known already; shape (n,).

    >>> bank = torch.tensor([[0.0], [1.0], [7.0]])
    >>> nearest(torch.tensor([[0.0], [5.0]]), bank, k=1, skip=torch.tensor([0, -1])).positions
    tensor([[1],
            [2]])
    """
    if squares is None:
        squares = bank.square().sum(dim=1)
    doubled = -2 * bank
    step = max(1, BLOCK_ENTRIES // len(bank))
    parts = []
    for start in range(0, len(queries), step):
        block, own = queries[start : start + step], None if skip is None else skip[start : start + step]
        scores = _scores(block, doubled, squares, skip=own, skip_equal=skip_equal)
        parts.append(_least(scores, block, k=k, discount=discount))
    return Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))


def nearest_others(rows: Tensor, *, k: int, squares: Tensor) -> Nearest:
    """Find the k other rows that are nearest to each row, by squared distance minus the other row's crowding.

    Args:
        rows: shape (n, d).
        k: the number of rows to find.
        squares: the squared norms of the rows, shape (n,).

    >>> rows = torch.tensor([[0.0], [1.0], [3.0]])
    >>> nearest_others(rows, k=1, squares=rows.square().flatten()).positions.flatten()
    tensor([1, 0, 1])
    """
    own = torch.arange(len(rows), device=rows.device)
    if len(rows) ** 2 > BLOCK_ENTRIES:
        crowding = nearest(rows, rows, k=k, skip=own, squares=squares).crowding
        return nearest(rows, rows, k=k, skip=own, discount=crowding, squares=squares)
    scores = _scores(rows, -2 * rows, squares, skip=own)  # fit in memory, so the products are done once
    return _least(scores, rows, k=k, discount=_least(scores, rows, k=k).crowding)


def _scores(
    queries: Tensor, doubled: Tensor, squares: Tensor, *, skip: Tensor | None, skip_equal: bool = False
) -> Tensor:
    """Return ‖b‖² − 2ab, shape (m, n), infinite for what is left out. ‖a‖² does not change the order."""
    with torch.autocast(queries.device.type, enabled=False):  # half precision overflows and is too coarse
        scores = linear(queries, doubled, squares)
    if skip is not None:
        own = skip[:, None]
        scores.scatter_add_(1, own.clamp_min(0), torch.where(own < 0, 0.0, torch.inf).to(scores.dtype))
    if skip_equal:
        own_square = queries.square().sum(dim=1, keepdim=True)
        scores.masked_fill_(scores + own_square <= _EQUAL * (own_square + squares), torch.inf)
    return scores


def _least(scores: Tensor, queries: Tensor, *, k: int, discount: Tensor | None = None) -> Nearest:
    """Return the rows of least score. A discount is taken off the scores in place."""
    own_square = queries.square().sum(dim=1, keepdim=True)
    found = scores.topk(k, dim=1, largest=False, sorted=False)
    finite = found.values.isfinite()  # some are infinite if fewer than k rows remain
    crowding = torch.where(finite, found.values + own_square, 0).sum(dim=1) / finite.sum(dim=1).clamp_min(1)
    if discount is not None:
        found = scores.sub_(discount).topk(k, dim=1, largest=False, sorted=False)
    return Nearest(found.indices, found.values + own_square, crowding)


def neighbour_spread(x: Tensor, pairs: Tensor) -> Tensor:
    """r with r_j² = ½ · mean over pairs of neighbours (i, k) of (x_kj − x_ij)²: the spread of neighbours.

    The expected squared difference of two draws from one distribution is twice the variance, hence the factor ½.

    Args:
        x: rows (n, d).
        pairs: the positions of a row and of one of its neighbours in x, shape (p, 2).

    >>> neighbour_spread(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([[0, 1], [1, 0]]))
    tensor([1.4142, 0.0000])
    """
    squares = x.new_zeros(x.shape[1])
    for some in pairs.split(max(1, BLOCK_ENTRIES // x.shape[1])):
        squares += (x[some[:, 0]] - x[some[:, 1]]).square().sum(dim=0)
    return (squares / (2 * len(pairs))).sqrt()


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
        sums = values.new_zeros(*values.shape[:-1], self.number).index_add(-1, self.of_feature, values)
        return sums / self.sizes

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
        squares = values.new_zeros(*values.shape[:-1], self.number).index_add(-1, self.of_feature, values.square())
        return squares.sqrt()

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


def check_columns(columns: Columns | None, shape: tuple[int, ...], *, has_donors: bool) -> None:
    """Refuse columns of other features than those of a sample, and columns without rows to take them from."""
    if columns is None:
        return
    if shape != (len(columns.of_feature),):
        raise UserError(f"columns are of {len(columns.of_feature)} features: samples have shape {shape}.")
    if not has_donors:
        raise UserError("columns of several features take the values of other rows: give a support, or donors.")


def check_along(data: object, neighbours: object, weight: float) -> None:
    """Refuse training rows, a number of neighbours or a weight that ``PiNoise.along`` cannot take.

    >>> check_along(torch.zeros(3, 2), -1, 0.0)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: neighbours is -1: give a whole number, or 0 for noise that does not move samples.
    """
    if not isinstance(data, Tensor) or not data.is_floating_point() or data.ndim < 2:
        found = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, Tensor) else type(data).__name__
        raise UserError(f"data is {found}: give training rows as a tensor of floating-point numbers, (n, *shape).")
    if not bool(torch.isfinite(data).all()):
        raise UserError("data has an entry that is nan or infinite: fill it in or leave its row out.")
    if isinstance(neighbours, bool) or not isinstance(neighbours, int) or neighbours < 0:
        raise UserError(f"neighbours is {neighbours}: give a whole number, or 0 for noise that does not move samples.")
    if not (weight >= 0 and math.isfinite(weight)):
        raise UserError(f"weight is {weight}: it must be a number of at least 0.")
