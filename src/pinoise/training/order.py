"""The order in which an epoch takes its rows, and their gathering ahead of the step that needs them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pinoise.choices import MANY_ROWS
from pinoise.data.rows import Rows

BLOCK = 16
"""Rows that follow each other in the data and are read together, where there are many rows."""

POOL = 4096
"""Blocks whose rows are shuffled among each other."""

Numbers = npt.NDArray[np.int64]


class Kept:
    """The numbers of all rows but a few, in order. They are not listed, because there may be very many.

    >>> Kept(6, torch.tensor([0, 3]))[torch.tensor([0, 1, 2, 3])]
    tensor([1, 2, 4, 5])
    """

    def __init__(self, n_rows: int, left_out: Tensor) -> None:
        """Leave out some rows, whose numbers are sorted."""
        self._size = n_rows - len(left_out)
        self._before = left_out - torch.arange(len(left_out))  # rows kept before each that is left out

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, positions: Tensor) -> Tensor:
        if not len(self._before):
            return positions
        return positions + torch.searchsorted(self._before, positions, right=True)


def shuffled_rows(n_rows: int, *, seed: int, epoch: int) -> Tensor:
    """Return the row order of an epoch. It depends on seed and epoch alone, so a resumed run has the same order.

    >>> shuffled_rows(5, seed=0, epoch=3).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n_rows))


class ShuffledBlocks:
    """The order of an epoch over very many rows: blocks in random order, and rows shuffled within pools of blocks.

    Rows are read from the data in blocks of 16, so that a disk reads whole pages, and shuffled among those of 4,096
    random blocks. A batch of m rows is as good as one drawn from all rows but for rows of the same block, which it has
    about m² / (2 · 4,096) pairs of. Even if the data is sorted, so that the rows of a block are alike, the variance of
    a batch's mean is at most 1 + m / 4,096 times that of a plain shuffle. The order takes a quarter of a byte for each
    row, and depends on seed and epoch alone.

    >>> order = ShuffledBlocks(100_003, seed=0, epoch=1)
    >>> rows = np.concatenate([order[first : first + 1000] for first in range(0, 100_003, 1000)])
    >>> np.array_equal(np.sort(rows), np.arange(100_003))
    True
    """

    def __init__(self, n_rows: int, *, seed: int, epoch: int) -> None:
        """Shuffle so many rows."""
        self._rows, self._seed = n_rows, (seed, epoch)
        self._pool = -1, np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def _blocks(self) -> npt.NDArray[np.int32]:
        blocks = np.arange(-(-self._rows // BLOCK), dtype=np.int32)
        return np.random.default_rng(self._seed).permutation(blocks)

    @cached_property
    def _short(self) -> tuple[int, int]:
        """The pool with the last block of the data, and the rows that it lacks."""
        last = int(np.argmax(self._blocks)) // POOL
        return last, len(self._blocks) * BLOCK - self._rows

    def _start(self, pool: int) -> int:
        """Return the position of the first row of a pool."""
        last, lacking = self._short
        return min(self._rows, pool * POOL * BLOCK - (lacking if pool > last else 0))

    def members(self, pool: int) -> Numbers:
        """Return the rows of a pool in the order of the data; none after the last pool."""
        blocks = np.sort(self._blocks[pool * POOL : (pool + 1) * POOL]).astype(np.int64)
        rows = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        return rows[rows < self._rows]

    def pool_at(self, position: int) -> int:
        """Return the pool that a position of the order is in."""
        guess = position // (POOL * BLOCK)
        return guess + (position >= self._start(guess + 1))

    def __getitem__(self, positions: slice) -> Numbers:
        first, stop, _ = positions.indices(self._rows)
        found = []
        while first < stop:
            pool = self.pool_at(first)
            if self._pool[0] != pool:
                shuffle = np.random.default_rng([*self._seed, 1 + pool])
                self._pool = pool, shuffle.permutation(self.members(pool))
            start, end = self._start(pool), self._start(pool + 1)
            found.append(self._pool[1][first - start : min(stop, end) - start])
            first = end
        return np.concatenate(found) if found else np.empty(0, np.int64)


class Upcoming:
    """The rows of every step of training, from the step that is asked for. Those of the next are gathered meanwhile.

    Rows in memory are gathered when they are asked for. Rows in files are gathered in a thread while a step runs.
    Whatever thread gathers them, every step has the same rows.
    """

    def __init__(
        self, rows: Rows, kept: Kept, *, seed: int, per_epoch: int, share: int, processes: int = 1, rank: int = 0
    ) -> None:
        """Plan steps.

        Args:
            rows: standardised samples.
            kept: the rows to train on.
            seed: of the order.
            per_epoch: steps in an epoch.
            share: rows of a process in a step.
            processes: the number of processes.
            rank: the number of this one.
        """
        self._rows, self._kept, self._seed = rows, kept, seed
        self._per_epoch, self._share, self._processes, self._rank = per_epoch, share, processes, rank
        self._epoch = -1
        self._order: ShuffledBlocks | Tensor = torch.empty(0)
        self._ahead = ThreadPoolExecutor(max_workers=1) if getattr(rows, "in_files", False) else None
        self._next: tuple[int, Future[tuple[Tensor, Tensor]]] | None = None

    def at(self, step: int, last: int) -> tuple[Tensor, Tensor]:
        """Return the row numbers of a step and their samples; steps from ``last`` on never come."""
        if self._ahead is None:
            return self._gather(step)
        asked, future = self._next or (-1, None)
        found = self._gather(step) if future is None or asked != step else future.result()
        self._next = (step + 1, self._ahead.submit(self._gather, step + 1)) if step + 1 < last else None
        return found

    def _gather(self, step: int) -> tuple[Tensor, Tensor]:
        epoch, position = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            draw = ShuffledBlocks if len(self._kept) > MANY_ROWS else shuffled_rows
            self._order = draw(len(self._kept), seed=self._seed, epoch=epoch)
        first = (position * self._processes + self._rank) * self._share
        positions = self._order[first : first + self._share]
        chosen = self._kept[torch.as_tensor(positions)]
        return chosen, self._rows[chosen]
