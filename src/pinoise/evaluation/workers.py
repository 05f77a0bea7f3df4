"""A map over shares of the work: in this process, or in several that it starts and that end with it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
import torch

from pinoise.choices import OWN_MODULES
from pinoise.data.rows import Rows
from pinoise.errors import UserError
from pinoise.evaluation.embedding import embed

Item = TypeVar("Item")
Result = TypeVar("Result")


def mapped(function: Callable[[Item], Result], items: Sequence[Item], *, processes: int = 1) -> Iterator[Result]:
    """Yield the results in order, as from ``map``; several processes each take an item at a time.

    >>> list(mapped(abs, [-2, 1]))
    [2, 1]
    """
    if processes == 1 or len(items) < 2:
        yield from map(function, items)
        return
    # Not forked: a copy of threads' locks would wait for threads that it does not have.
    with ProcessPoolExecutor(min(processes, len(items)), get_context("spawn"), _begin, (sys.path, OWN_MODULES)) as pool:
        try:
            yield from pool.map(function, items)
        except BrokenProcessPool:
            raise UserError("a process ended before its work was done: give the command again.") from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(path: list[str], own: list[str]) -> None:
    sys.path[:], OWN_MODULES[:] = path, own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of which the first process tells, and ends this one
    torch.set_num_threads(1)


def embed_together(encode: torch.nn.Module, rows: Rows, *, processes: int = 1) -> np.ndarray:
    """Return the embedding (n, o) of every row, in order; each of several processes embeds a share.

    >>> embed_together(torch.nn.Identity(), torch.tensor([[1.0], [3.0]]))
    array([[1.],
           [3.]], dtype=float32)
    """
    n = len(rows)
    if processes == 1 or n < processes:
        return embed(encode, rows)
    shares = [range(n * rank // processes, n * (rank + 1) // processes) for rank in range(processes)]
    return np.concatenate(list(mapped(partial(_embedded_share, encode, rows), shares, processes=processes)))


def _embedded_share(encode: torch.nn.Module, rows: Rows, share: range) -> np.ndarray:
    return embed(encode, rows, only=share)
