"""Embeddings that several processes make together: each embeds a share of the rows, and the first has them all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from pinoise.data.rows import Rows
from pinoise.evaluation.embedding import embed

dist: Any = torch.distributed  # which does not export its functions to the type checker


class Team(NamedTuple):
    """The processes that embed together, of which this is one. They have met in torch's process group.

    >>> Team(rank=1, size=3).share(10)
    range(3, 6)
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process has the whole embedding in the end."""
        return self.rank == 0

    def share(self, rows: int, *, of: int | None = None) -> range:
        """Return the rows of this process, or ``of`` another. Shares follow one another, and every row is in one."""
        rank = self.rank if of is None else of
        return range(rows * rank // self.size, rows * (rank + 1) // self.size)

    def embed(self, encode: nn.Module, rows: Rows) -> np.ndarray:
        """Return the embedding (n, o) of every row in the first process, and that of its own share in any other.

        All processes must call it with the same rows.
        """
        n = len(rows)
        if self.size == 1 or (n < self.size and self.is_first):
            return embed(encode, rows)
        if n < self.size:
            return np.empty((0, 0), np.float32)
        own = torch.from_numpy(embed(encode, rows, only=self.share(n)))
        if not self.is_first:
            dist.send(own, dst=0)
            return own.numpy()
        whole = own.new_empty(n, own.shape[1])
        whole[: len(own)] = own
        for rank in range(1, self.size):
            share = self.share(n, of=rank)
            dist.recv(whole[share.start : share.stop], src=rank)
        return whole.numpy()


ALONE = Team()
