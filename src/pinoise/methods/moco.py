"""MoCo v2 (He et al., 2020, arXiv:1911.05722; Chen et al., 2020, arXiv:2003.04297): a queue of past keys.

Gradient reaches π-noise through the query branch alone: the momentum network makes the keys without gradient. Each view
is the query once and the key once, so noise in either view learns.

Batch normalisation, in an image encoder or in a head, differs from the original in two ways. Both views pass each
network as one batch, as in ``Method.encode``. The original passes the queries of one view and the keys of the other one
after the other, each with its own statistics. And the keys are not shuffled between processes. Shuffling prevents a
leak: a query and its key are normalised over the same samples, but the keys of the queue over samples of other steps.
The traces of a batch's statistics then tell the key from its negatives, without any information about the sample.
Nothing replaces shuffling here. An encoder and a head without batch normalisation do not have this leak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Self

import torch
from annotated_types import Ge
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Entries, Positive, Share, within
from pinoise.errors import UserError
from pinoise.methods.base import Method, full_precision, two_views
from pinoise.methods.gathering import gather
from pinoise.methods.momentum import Momentum
from pinoise.networks.mlp import width_of
from pinoise.views import Batch, Site

TEMPERATURE = 0.2  # τ of methods with a memory


def info_nce(
    anchor: Tensor, positive: Tensor, negatives: Tensor, *, own: Tensor | None = None, temperature: float = TEMPERATURE
) -> Tensor:
    """InfoNCE: −log of exp(aᵀp/τ) / (exp(aᵀp/τ) + Σ exp(aᵀv/τ)); a and p are normalised here.

    Args:
        anchor: a, shape (m, dim).
        positive: p, shape (m, dim).
        negatives: v, unit vectors, shape (n, dim).
        own: which of these vectors are of the sample itself and no negatives, shape (m, n); None if none is.
        temperature: τ.

    Returns:
        The loss of every sample, shape (m,).

    >>> info_nce(torch.eye(2), torch.eye(2), torch.eye(2), temperature=1.0)  # log(2 + 1/e)
    tensor([0.8620, 0.8620])
    """
    with full_precision(anchor, positive, negatives) as (anchor, positive, negatives):
        anchor, positive = F.normalize(anchor, dim=1), F.normalize(positive, dim=1)
        near = (anchor * positive).sum(dim=1, keepdim=True)  # (m, 1)
        far = anchor @ negatives.T  # (m, n)
        if own is not None:
            far = far.masked_fill(own, -torch.inf)
        logits = torch.cat([near, far], dim=1) / temperature  # (m, 1 + n)
        return F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.int64), reduction="none")


class MoCo(Method):
    """Every view's query against the other view's key and a queue of keys from past steps, averaged over both views.

    A forward pass in train mode stores its keys. ``after_step`` puts the keys of all processes into the queue, with
    their row numbers. A queue longer than an epoch contains keys of the sample itself; they are not its negatives.

    Args:
        encoder: f_θ.
        head: the projection head, with the integer attribute ``out_features``.
        temperature: τ.
        momentum: the share of the key network that is kept at every step.
        queue: K, the number of keys in the queue; at the start they are random.
    """

    queue: Tensor
    queue_rows: Tensor
    position: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        temperature: Positive = TEMPERATURE,
        momentum: Share = 0.99,
        queue: Annotated[Entries, Ge(2)] = 4096,
    ) -> None:
        super().__init__(encoder, head)
        self.temperature = within("temperature", temperature, Positive)
        self.momentum = within("momentum", momentum, Share)
        self.key_network = Momentum(encoder, head)
        size = within("queue", queue, Entries)
        self.register_buffer("queue", F.normalize(torch.randn(size, width_of("head", head)), dim=1))
        self.register_buffer("queue_rows", torch.full((size,), -1))  # the row of every key, −1 for random keys
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))  # where the oldest key is
        self._arrived: tuple[Tensor, Tensor] | None = None  # keys (2m, dim) and their rows (2m,)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with a new head. Refuse a queue that is shorter than the keys of one step."""
        method = super().build(site, **options)
        rows = min(site.batch_size, len(site.rows))
        if len(method.queue) < 2 * rows:
            raise UserError(
                f"method.queue is {len(method.queue)} but a step makes {2 * rows} keys, two for each of {rows} rows: "
                "make the queue larger or training.batch_size smaller."
            )
        return method

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        first, second = two_views(views, method="moco")
        m = len(first.x)
        query = self.project(views)  # (2m, dim)
        key = self.key_network(torch.cat([first.x, second.x]))  # (2m, dim)
        if self.training:
            self._arrived = F.normalize(key.to(self.queue.dtype), dim=1), first.rows.repeat(2)
        own = (self.queue_rows == first.rows[:, None]).repeat(2, 1)  # (2m, K)
        losses = info_nce(query, key.roll(m, dims=0), self.queue, own=own, temperature=self.temperature)  # (2m,)
        return losses.view(2, m).mean(dim=0)

    def guessing_loss(self, batch_size: int) -> float | None:
        """log(K + 1): the key is as likely as any key of the queue. Masked keys of the sample itself reduce it."""
        return math.log(len(self.queue) + 1)

    @torch.no_grad()
    def after_step(self, step: int, steps: int) -> None:
        """Move the key network towards the encoder, then replace the oldest keys by the keys of this step."""
        self.key_network.follow(self.encoder, self.head, momentum=self.momentum)
        if self._arrived is None:
            return
        keys, rows = (_in_joint_order(part) for part in self._arrived)
        places = (self.position + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue[places], self.queue_rows[places] = keys, rows
        self.position.add_(len(keys)).remainder_(len(self.queue))
        self._arrived = None


def _in_joint_order(of_views: Tensor) -> Tensor:
    """Return the entries of all processes for two views, (2m, …), in the order that one process would have made."""
    gathered = gather(of_views.unflatten(0, (1, 2, -1)))  # (processes, 2, m, …)
    return gathered.transpose(0, 1).flatten(0, 2)
