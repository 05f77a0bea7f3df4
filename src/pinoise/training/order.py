"""The order in which an epoch takes very many rows, and reads those that follow each other together."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

BLOCK = 16
"""Rows that follow each other in the data and are read together, where there are many rows."""

POOL = 4096
"""Blocks whose rows are shuffled among each other."""

Numbers = npt.NDArray[np.int64]


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

    @cached_property
    def _blocks(self) -> npt.NDArray[np.int32]:
        """The whole blocks in order; the rows after them join the last pool."""
        return np.random.default_rng(self._seed).permutation(np.arange(self._rows // BLOCK, dtype=np.int32))

    def _members(self, pool: int, *, last: bool) -> Numbers:
        """Return the rows of a pool in the order of the data."""
        blocks = np.sort(self._blocks[pool * POOL : (pool + 1) * POOL]).astype(np.int64)
        rows = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        return np.append(rows, np.arange(len(self._blocks) * BLOCK, self._rows)) if last else rows

    def __getitem__(self, positions: slice) -> Numbers:
        first, stop, _ = positions.indices(self._rows)
        size, last = POOL * BLOCK, max(0, (len(self._blocks) - 1) // POOL)
        found = [np.empty(0, np.int64)]
        while first < stop:
            pool = min(first // size, last)
            if self._pool[0] != pool:
                shuffle = np.random.default_rng([*self._seed, 1 + pool])
                self._pool = pool, shuffle.permutation(self._members(pool, last=pool == last))
            end = stop if pool == last else min(stop, (pool + 1) * size)
            found.append(self._pool[1][first - pool * size : end - pool * size])
            first = end
        return np.concatenate(found)
