"""Views that mix a sample with others of its batch: DACL's mixup and the four transforms of MODALS."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from pinoise.choices import NonNegative, Share
from pinoise.views.base import Batch, FunctionView, View, per_sample
from pinoise.views.site import Site

RATIO = 0.1  # the strength of each transform of MODALS


def shuffled(x: Tensor) -> Tensor:
    """Return another sample of the batch for every sample: the next one in a random cyclic order, never itself.

    >>> x = torch.arange(8.0)
    >>> bool((shuffled(x) != x).all())
    True
    """
    order = torch.randperm(len(x), device=x.device)
    return x[order.roll(1)][order.argsort()]


class Mixup(View):
    """DACL (Verma et al., 2021): λ x + (1 − λ) x' with x' another sample and λ ~ U(α, 1).

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> bool((Mixup(alpha=1.0)(Batch(x, torch.arange(2))).x == x).all())
    True
    """

    def __init__(self, *, alpha: Share = 0.9) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, batch: Batch) -> Batch:
        """Return the mixed batch."""
        ratio = self.alpha + (1 - self.alpha) * torch.rand(len(batch.x), device=batch.x.device, dtype=batch.x.dtype)
        return batch.moved(torch.lerp(shuffled(batch.x), batch.x, per_sample(ratio, batch.x)))


def interpolate(x: Tensor, ratio: float) -> Tensor:
    """x + ratio (x' − x), towards another sample.

    MODALS moves towards a hard sample of the same class. Without labels, any sample of the batch takes its place.
    """
    return torch.lerp(x, shuffled(x), ratio)


def extrapolate(x: Tensor, ratio: float) -> Tensor:
    """x + ratio (x − x̄), away from the mean of the batch.

    >>> extrapolate(torch.tensor([[0.0], [2.0]]), ratio=0.5).flatten()
    tensor([-0.5000,  2.5000])
    """
    return x + ratio * (x - x.mean(0))


def add_batch_noise(x: Tensor, ratio: float) -> Tensor:
    """x + ratio s ⊙ n with n ~ N(0, I) and s the standard deviation of each feature in the batch."""
    return x + ratio * x.std(0, correction=0) * torch.randn_like(x)


def add_difference(x: Tensor, ratio: float) -> Tensor:
    """x + ratio (x' − x''), the difference of two other samples, drawn independently."""
    return x + ratio * (shuffled(x) - shuffled(x))


class Modals(View):
    """The four transforms of MODALS as a set 𝒜 for Algorithm 2, which draws one of them per sample."""

    @classmethod
    def build(
        cls,
        site: Site,
        *,
        interpolation: NonNegative = RATIO,
        extrapolation: NonNegative = RATIO,
        gaussian: NonNegative = RATIO,
        difference: NonNegative = RATIO,
    ) -> tuple[View, ...]:
        """Return the four views, each with its strength."""
        ratios = {
            interpolate: interpolation,
            extrapolate: extrapolation,
            add_batch_noise: gaussian,
            add_difference: difference,
        }
        return tuple(FunctionView(partial(function, ratio=ratio)) for function, ratio in ratios.items())
