"""The contract of a view: a module from a batch to a batch, run on the device inside the training step."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from pinoise.noise import PiNoise


class Batch(NamedTuple):
    """Samples, their row numbers in the training data, and the learned noise in them, if any."""

    x: Tensor  # (m, *shape)
    rows: Tensor  # (m,)
    noise: Tensor | None = None  # (m, *shape): ε, so that an objective can judge it
    drew: Tensor | None = None  # (m,): which samples received ε; all of them if None
    features: Tensor | None = None  # (m, dim): f_θ of these very samples, where it is known already

    def moved(self, x: Tensor) -> Batch:
        """Return other samples in the same rows; what was known of the old ones does not hold for them."""
        return self._replace(x=x, features=None)


class View(nn.Module):
    """An augmentation a ∈ 𝒜. Subclasses implement ``forward``; row i of the result is a view of row i."""

    def forward(self, batch: Batch) -> Batch:
        """Return one random view of every sample."""
        raise NotImplementedError

    @property
    def learned(self) -> PiNoise | None:
        """The noise in this view that learns, if any."""
        return None

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return several independent views; a view with costly parameters computes them once."""
        return tuple(self(batch) for _ in range(times))


class Identity(View):
    """The sample itself.

    >>> import torch
    >>> x = torch.ones(2, 3)
    >>> Identity()(Batch(x, torch.arange(2))).x is x
    True
    """

    def forward(self, batch: Batch) -> Batch:
        """Return the batch as it is."""
        return batch


def per_sample(values: Tensor, x: Tensor) -> Tensor:
    """Reshape (m,) so that it broadcasts over samples of any rank.

    >>> import torch
    >>> per_sample(torch.zeros(4), torch.zeros(4, 2, 3)).shape
    torch.Size([4, 1, 1])
    """
    return values.reshape((-1,) + (1,) * (x.ndim - 1))
