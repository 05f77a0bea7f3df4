"""MemoryBank (Wu et al., 2018, arXiv:1805.01978): views against a bank that stores one embedding of every row.

Both views pass the same encoder with gradient, so π-noise in either learns. The entries of the bank are constants.

The positive f(x₊) is the row's own entry, made from earlier views of the row, and not the other view of the step. The
entries lag behind the encoder. If the two new views were a positive pair, both could move away from all entries, and
the encoder would collapse to one point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Entries, Positive, Share, within
from pinoise.errors import UserError
from pinoise.methods.base import Method, two_views
from pinoise.methods.gathering import gather
from pinoise.methods.moco import TEMPERATURE, info_nce
from pinoise.networks.blocks import width_of
from pinoise.views import Batch, Site


class MemoryBank(Method):
    """Each of two views against its row's entry in the bank and the entries of others, averaged over both views.

    A forward pass in train mode stores its projections. ``after_step`` moves the entries of its rows, over all
    processes, towards them: v ← normalise(κ v + (1 − κ) f) with f the mean over both views.

    Args:
        encoder: f_θ.
        head: the projection head, with the integer attribute ``out_features``.
        rows: the number of training rows; the row numbers of a batch are below it.
        temperature: τ.
        momentum: κ, the share of an entry that is kept at every step.
        negatives: the number of entries drawn for a batch, with replacement. A bank with at most this number of other
            entries is used whole. A row's own entry is never its negative.
    """

    bank: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        rows: int,
        *,
        temperature: Positive = TEMPERATURE,
        momentum: Share = 0.5,
        negatives: Entries = 4096,
    ) -> None:
        super().__init__(encoder)
        self.temperature = within("temperature", temperature, Positive)
        self.momentum = within("momentum", momentum, Share)
        self.negatives = within("negatives", negatives, Entries)
        self.head = head
        if rows < 2:
            raise UserError(f"rows is {rows}: it must be at least 2.")
        self.register_buffer("bank", F.normalize(torch.randn(rows, width_of("head", head)), dim=1))
        self._seen: tuple[Tensor, Tensor] | None = None  # rows (m,) and their new f (m, dim)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with a new head and an entry for every training row."""
        return cls(site.encoder, site.projection_head(), len(site.rows), **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        first, second = two_views(views, method="memorybank")
        rows, m = first.rows, len(first.x)
        own = self._entries(rows)  # (m, dim)
        z = self.head(self.encode((first, second))).to(self.bank.dtype)  # (2m, dim)
        if self.training:
            self._seen = rows, F.normalize(z.detach(), dim=1).view(2, m, -1).mean(dim=0)
        drawn = self._draw(first.generator)  # (n,)
        losses = info_nce(
            z,
            own.repeat(2, 1),
            self.bank[drawn],
            excluded=(drawn == rows[:, None]).repeat(2, 1),
            temperature=self.temperature,
        )
        return losses.view(2, m).mean(dim=0)

    def guessing_loss(self, batch_size: int) -> float | None:
        """log(n + 1): a row's own entry is as likely as any of n negatives."""
        return math.log(min(self.negatives, len(self.bank) - 1) + 1)

    @torch.no_grad()
    def after_step(self, step: int, steps: int) -> None:
        """Move the entries of this step's rows."""
        if self._seen is None:
            return
        rows, projections = (gather(part) for part in self._seen)
        moved = self.bank[rows].lerp(projections, 1 - self.momentum)
        self.bank[rows] = F.normalize(moved, dim=1)
        self._seen = None

    def _draw(self, generator: Generator | None) -> Tensor:
        if self.negatives >= len(self.bank) - 1:
            return torch.arange(len(self.bank), device=self.bank.device)
        return torch.randint(len(self.bank), (self.negatives,), device=self.bank.device, generator=generator)

    def _entries(self, rows: Tensor) -> Tensor:
        try:
            return self.bank[rows]
        except IndexError:  # of a CPU; on a GPU to look at the numbers would make every step wait
            raise UserError(
                f"the bank of method 'memorybank' has rows 0 to {len(self.bank) - 1} and a batch holds "
                f"{int(rows.min())} to {int(rows.max())}: give the number of training rows as 'rows'."
            ) from None
