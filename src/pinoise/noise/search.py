"""Nearest rows of a bank, by exhaustive search in blocks that fit in memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pinoise.networks.linear import linear

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
    positions, distances, crowding = [], [], []
    step = max(1, BLOCK_ENTRIES // len(bank))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        with torch.autocast(block.device.type, enabled=False):  # half precision overflows and is too coarse
            scores = linear(block, doubled, squares)  # ‖b‖² − 2ab: ‖a‖² does not change the order
        if skip is not None:
            own = skip[start : start + step, None]
            scores.scatter_add_(1, own.clamp_min(0), torch.where(own < 0, 0.0, torch.inf).to(scores.dtype))
        own_square = block.square().sum(dim=1, keepdim=True)
        if skip_equal:
            scores.masked_fill_(scores + own_square <= _EQUAL * (own_square + squares), torch.inf)
        found = scores.topk(k, dim=1, largest=False, sorted=False)
        finite = found.values.isfinite()  # some are infinite if fewer than k rows remain
        crowding.append(torch.where(finite, found.values + own_square, 0).sum(dim=1) / finite.sum(dim=1).clamp_min(1))
        if discount is not None:
            found = scores.sub_(discount).topk(k, dim=1, largest=False, sorted=False)
        positions.append(found.indices)
        distances.append(found.values + own_square)
    return Nearest(torch.cat(positions), torch.cat(distances), torch.cat(crowding))
