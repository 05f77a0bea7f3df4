"""Views that mix a sample with others of its batch: DACL's mixup and the four transforms of MODALS."""

from __future__ import annotations

import torch
from torch import Tensor

from pinoise.choices import NonNegative, Share
from pinoise.views.base import Batch, View, per_sample
from pinoise.views.site import Site

RATIO = 0.1
"""How far each transform of MODALS goes."""


def shuffled(x: Tensor) -> Tensor:
    """Return another sample of the batch for every sample: a random rotation of a random order, so never itself.

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


class Interpolation(View):
    """MODALS (Cheung and Yeung, 2021): x + ratio (x' − x), towards another sample.

    MODALS interpolates towards a hard sample of the same class; without labels any sample of the batch stands for it.
    """

    def __init__(self, *, ratio: NonNegative = RATIO) -> None:
        super().__init__()
        self.ratio = ratio

    def forward(self, batch: Batch) -> Batch:
        """Return the interpolated batch."""
        return batch.moved(torch.lerp(batch.x, shuffled(batch.x), self.ratio))


class Extrapolation(View):
    """MODALS: x + ratio (x − x̄), away from the mean of the batch.

    >>> Extrapolation(ratio=0.5)(Batch(torch.tensor([[0.0], [2.0]]), torch.arange(2))).x.flatten()
    tensor([-0.5000,  2.5000])
    """

    def __init__(self, *, ratio: NonNegative = RATIO) -> None:
        super().__init__()
        self.ratio = ratio

    def forward(self, batch: Batch) -> Batch:
        """Return the extrapolated batch."""
        return batch.moved(batch.x + self.ratio * (batch.x - batch.x.mean(0)))


class BatchGaussian(View):
    """MODALS: x + ratio s ⊙ n with s the standard deviation of each feature in the batch."""

    def __init__(self, *, ratio: NonNegative = RATIO) -> None:
        super().__init__()
        self.ratio = ratio

    def forward(self, batch: Batch) -> Batch:
        """Return the noisy batch."""
        return batch.moved(batch.x + self.ratio * batch.x.std(0, correction=0) * torch.randn_like(batch.x))


class Difference(View):
    """MODALS: x + ratio (x' − x''), the difference of two other samples, each drawn on its own."""

    def __init__(self, *, ratio: NonNegative = RATIO) -> None:
        super().__init__()
        self.ratio = ratio

    def forward(self, batch: Batch) -> Batch:
        """Return the shifted batch."""
        return batch.moved(batch.x + self.ratio * (shuffled(batch.x) - shuffled(batch.x)))


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
        """Return the four views, each with how far it goes."""
        return (
            Interpolation(ratio=interpolation),
            Extrapolation(ratio=extrapolation),
            BatchGaussian(ratio=gaussian),
            Difference(ratio=difference),
        )
