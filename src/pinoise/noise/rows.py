"""Rows of the data: some that represent all of them, and the nearest to a sample, searched exhaustively."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from pinoise.choices import MANY_ROWS
from pinoise.networks.mlp import linear

# The most numbers held at once: distances, or rows to search for.
BLOCK_ENTRIES = 1 << 23

_EQUAL = 1e-6  # two rows are equal if their squared distance is below this share of their squared norms


# Enough rows to represent the marginals of every feature, in at most 64 MB.
_BANK_ENTRIES = 1 << 24


class TrainingRows(Protocol):
    """Samples that can be gathered by their row numbers: a tensor, or rows in files."""

    def __len__(self) -> int:
        """The number of samples."""

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return the samples (m, *shape) of these rows."""


def draw_bank(rows: TrainingRows, *, most: int | None = None) -> tuple[Tensor, Tensor]:
    """Return random training rows that fit in memory, and their row numbers. The same data gives the same rows.

    >>> bank, numbers = draw_bank(torch.arange(6.0)[:, None], most=2)
    >>> bank.flatten().long().equal(numbers), len(numbers)
    (True, 2)
    """
    features = rows[torch.arange(1)].numel()
    size = min(len(rows), max(256, _BANK_ENTRIES // features), most or len(rows))
    if len(rows) > MANY_ROWS:  # of which no list is made
        chosen = np.random.default_rng(0).choice(len(rows), size, replace=False)
        numbers = torch.from_numpy(np.sort(chosen))
    else:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        numbers = order[:size].sort().values
    return rows[numbers], numbers


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
