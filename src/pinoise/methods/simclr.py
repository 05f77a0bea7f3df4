"""SimCLR (Chen et al., 2020): NT-Xent between two views of every sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from pinoise.choices import Positive, within
from pinoise.methods.base import Method, full_precision, joined, two_views
from pinoise.methods.gathering import from_others
from pinoise.views import Batch

# τ of NT-Xent. On vectors every method that uses it does better with this value than with the paper's 0.1.
TEMPERATURE = 0.5


def nt_xent(first: Tensor, second: Tensor, *, others: Tensor | None = None, temperature: float = TEMPERATURE) -> Tensor:
    """ℓ(x) of Eqs. 3 and 5: cross entropy of a view's partner among all 2(m − 1) other views and the partner itself.

    Similarity is the cosine of the projections. Both directions are averaged.

    Args:
        first: projections of one view, shape (m, dim).
        second: projections of the other view, shape (m, dim).
        others: projections of views of other samples, which are further negatives of all, shape (n, dim).
        temperature: τ.

    Returns:
        The loss of every sample, shape (m,).

    >>> nt_xent(torch.eye(2), torch.eye(2), temperature=1.0)  # −log(e / (e + 2))
    tensor([0.5514, 0.5514])
    """
    return joint_nt_xent(torch.cat([first, second]), others=others, temperature=temperature)


def joint_nt_xent(views: Tensor, *, others: Tensor | None = None, temperature: float = TEMPERATURE) -> Tensor:
    """ℓ(x) of ``nt_xent`` from the projections of both views together, shape (2m, dim), the first views first."""
    m = len(views) // 2
    with full_precision(*((views,) if others is None else (views, others))) as parts:
        own, *further = (F.normalize(part, dim=1) / temperature**0.5 for part in parts)
        similarity = (own @ joined([own, *further]).T).fill_diagonal_(-torch.inf)  # (2m, 2m + n): none with itself
        partner = torch.arange(2 * m, device=own.device).roll(m)  # the view of the same sample in the other half
        losses = F.cross_entropy(similarity, partner, reduction="none")  # (2m,)
        return losses.reshape(2, m).sum(dim=0) / 2


class SimCLR(Method):
    """NT-Xent on the projections of two views, through one concatenated forward pass.

    Both views pass the same encoder with gradient, so π-noise in either of them learns. Where several processes train
    together, the views of all of them are negatives, as if one process trained on the joint batch.

    Args:
        encoder: f_θ.
        head: the projection head.
        temperature: τ.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, *, temperature: Positive = TEMPERATURE) -> None:
        super().__init__(encoder, head)
        self.temperature = within("temperature", temperature, Positive)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return NT-Xent of every sample, shape (m,)."""
        return self.contrast(self.project(two_views(views, method="simclr")))

    def contrast(self, z: Tensor) -> Tensor:
        """Return NT-Xent of every sample from projections (2m, dim); in training, other processes have negatives."""
        # What is measured in evaluation is measured by every process on the same samples, or by one process alone.
        gathers = self.training and dist.is_available() and dist.is_initialized()
        return joint_nt_xent(z, others=from_others(z) if gathers else None, temperature=self.temperature)

    def guessing_loss(self, batch_size: int) -> float | None:
        """log(2m − 1): a view's partner is as likely as any other view."""
        return math.log(2 * batch_size - 1)


class PairLoss(Method):
    """A user's own loss on the projections of two views, which pass the encoder together.

    Both views pass the same encoder with gradient, so π-noise in either of them learns.

    Args:
        encoder: f_θ.
        head: the projection head.
        loss: a function from two projections (m, dim) to the loss of every sample (m,).

    >>> from pinoise.networks import MLPEncoder, ProjectionHead
    >>> def distance(first, second):
    ...     return (first - second).square().sum(dim=1)
    >>> method = PairLoss(MLPEncoder((3,), hidden=4, out_features=2), ProjectionHead(2), distance)
    >>> batch = Batch(torch.ones(5, 3), torch.arange(5))
    >>> method([batch, batch]).shape
    torch.Size([5])
    """

    least_loss = -math.inf  # of a loss that is not known

    def __init__(self, encoder: nn.Module, head: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(encoder, head)
        self.loss = loss

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        return self.loss(*self.project(two_views(views, method="pair loss")).chunk(2))
