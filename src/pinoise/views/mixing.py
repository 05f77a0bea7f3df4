"""Views that mix a sample with others of its batch: DACL's mixup and the four transforms of MODALS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from pinoise.choices import NonNegative, Share
from pinoise.noise import Columns
from pinoise.views.base import Batch, Site, View, per_sample

RATIO = 0.1  # the strength of each transform of MODALS


def shuffled(x: Tensor, generator: Generator | None = None) -> Tensor:
    """Return another sample of the batch for every sample: the next one in a random cyclic order, never itself.

    >>> x = torch.arange(8.0)
    >>> bool((shuffled(x) != x).all())
    True
    """
    order = torch.randperm(len(x), device=x.device, generator=generator)
    return x[order.roll(1)][order.argsort()]


class Mixup(View):
    """DACL (Verma et al., 2021): λ x + (1 − λ) x' with x' another sample and λ ~ U(α, 1).

    A column of several features, such as a category, is that of x' with probability 1 − λ.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> bool((Mixup(alpha=1.0)(Batch(x, torch.arange(2))).x == x).all())
    True
    """

    def __init__(self, columns: Columns | None = None, /, *, alpha: Share = 0.9) -> None:
        super().__init__()
        self.alpha = alpha
        self.columns = columns

    @classmethod
    def build(cls, site: Site, **options: Any) -> Mixup:
        """Return the view for the columns of the data."""
        return cls(site.columns, **options)

    def forward(self, batch: Batch) -> Batch:
        """Return the mixed batch."""
        x, generator = batch.x, batch.generator
        ratio = self.alpha + (1 - self.alpha) * torch.rand(len(x), device=x.device, dtype=x.dtype, generator=generator)
        other = shuffled(x, generator)
        mixed = torch.lerp(other, x, per_sample(ratio, x))
        if self.columns is not None:
            mixed = self.columns(self.columns.taken(x, other, 1 - ratio[:, None], generator), mixed)
        return batch.moved(mixed)


def interpolate(x: Tensor, ratio: float, generator: Generator | None = None) -> Tensor:
    """x + ratio (x' − x), towards another sample.

    MODALS moves towards a hard sample of the same class. Without labels, any sample of the batch takes its place.
    """
    return torch.lerp(x, shuffled(x, generator), ratio)


def extrapolate(x: Tensor, ratio: float, generator: Generator | None = None) -> Tensor:
    """x + ratio (x − x̄), away from the mean of the batch.

    >>> extrapolate(torch.tensor([[0.0], [2.0]]), ratio=0.5).flatten()
    tensor([-0.5000,  2.5000])
    """
    return x + ratio * (x - x.mean(0))


def add_batch_noise(x: Tensor, ratio: float, generator: Generator | None = None) -> Tensor:
    """x + ratio s ⊙ n with n ~ N(0, I) and s the standard deviation of each feature in the batch."""
    return x + ratio * x.std(0, correction=0) * torch.randn_like(x, generator=generator)


def add_difference(x: Tensor, ratio: float, generator: Generator | None = None) -> Tensor:
    """x + ratio (x' − x''), the difference of two other samples, drawn independently."""
    return x + ratio * (shuffled(x, generator) - shuffled(x, generator))


class _Transform(View):
    """One of the functions above with its strength, which is also how often a category is that of another sample."""

    def __init__(
        self,
        function: Callable[[Tensor, float, Generator | None], Tensor],
        ratio: float,
        columns: Columns | None = None,
    ) -> None:
        super().__init__()
        self.function = function
        self.ratio = ratio
        self.columns = columns

    def forward(self, batch: Batch) -> Batch:
        """Return the transformed batch."""
        x, generator = batch.x, batch.generator
        moved = self.function(x, self.ratio, generator)
        if self.columns is not None:
            chance = torch.tensor([min(1.0, self.ratio)], device=x.device, dtype=x.dtype)
            moved = self.columns(self.columns.taken(x, shuffled(x, generator), chance, generator), moved)
        return batch.moved(moved)


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
        return tuple(_Transform(function, ratio, site.columns) for function, ratio in ratios.items())
