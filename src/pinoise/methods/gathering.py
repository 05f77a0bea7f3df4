"""Rows of all processes that train together, with gradient. The equations of the methods know nothing of processes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.nn.functional import all_gather


def world_size() -> int:
    """Return the number of processes that train together.

    >>> world_size()
    1
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def gather(x: Tensor) -> Tensor:
    """Return the rows of all processes in the order of their ranks, with gradient.

    Every process must call it at the same step, with the same number of rows. The gradient of a row is that of the
    *sum* of all processes' losses. Each process takes the mean over its own samples and ``DistributedDataParallel``
    averages over processes, so that the weights get the gradient of the mean over the joint batch. No factor is needed.

    >>> gather(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if world_size() == 1:
        return x
    return torch.cat(all_gather(x.contiguous()))


def from_others(x: Tensor) -> Tensor | None:
    """Return the rows of all other processes, with gradient, or None in a process alone. All must call it.

    >>> from_others(torch.ones(2, 3)) is None
    True
    """
    if world_size() == 1:
        return None
    first = dist.get_rank() * len(x)
    rows = gather(x)
    return torch.cat([rows[:first], rows[first + len(x) :]])
