"""Views that add Gaussian noise, or noise within a budget that learns against the encoder."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from pinoise.choices import Positive, Size
from pinoise.networks.mlp import HIDDEN, MLPEncoder
from pinoise.noise import Columns, draw_bank
from pinoise.views.base import Batch, Site, View, per_sample
from pinoise.views.swap import ColumnView

SIGMA = 1.0  # the standard deviation of predefined noise, in standard deviations of each feature


class GaussianNoise(ColumnView):
    """x + σ s ⊙ n with n ~ N(0, I) and s the standard deviation of each feature (the paper's Random Noise).

    Columns of several features, such as categories, are those of a row of the bank with probability σ²/2.

    >>> GaussianNoise(torch.zeros(3), sigma=2.0)(Batch(torch.ones(2, 3), torch.arange(2))).x
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """

    feature_scale: Tensor
    bank: Tensor | None

    def __init__(
        self, unit: Tensor, columns: Columns | None = None, bank: Tensor | None = None, /, *, sigma: Positive = SIGMA
    ) -> None:
        super().__init__(columns)
        self.sigma = sigma
        self.register_buffer("feature_scale", unit)
        self.register_buffer("bank", bank, persistent=False)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the view in the units of the data."""
        bank = None if site.columns is None else draw_bank(site.rows)[0]
        return cls(site.unit, site.columns, bank, **options)

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise."""
        drawn = torch.randn_like(batch.x, generator=batch.generator)
        moved = batch.x + self.sigma * self.feature_scale * drawn
        if self.columns is not None and self.bank is not None:
            other = self.columns.from_rows(self.bank, batch.x, batch.generator)
            chance = torch.tensor([min(1.0, self.sigma**2 / 2)], device=moved.device, dtype=moved.dtype)
            moved = self.columns(self.columns.taken(batch.x, other, chance, batch.generator), moved)
        return batch.moved(moved)


def within_budget(perturbation: Tensor, feature_scale: Tensor, *, budget: float) -> Tensor:
    """Rescale a perturbation (m, *shape) so that its mean absolute value over live features is the budget.

    Args:
        perturbation: in standard deviations.
        feature_scale: the standard deviation of each feature, 0 for dead ones, shape (*shape).
        budget: the mean absolute value, in standard deviations.

    >>> within_budget(torch.tensor([[1.0, 5.0, -3.0]]), torch.tensor([1.0, 0.0, 10.0]), budget=0.5)
    tensor([[ 0.2500,  0.0000, -7.5000]])
    """
    live = feature_scale > 0
    size = (perturbation * live).flatten(1).abs().sum(dim=1) / live.sum()
    return budget * feature_scale * perturbation / per_sample(size.clamp_min(1e-12), perturbation)


class Viewmaker(View):
    """Viewmaker (Tamkin et al., 2021): x + δ(x, u) with u uniform noise and ‖δ‖₁ within a budget.

    δ learns against the encoder. Columns of several features, such as categories, stay as they are.

    Args:
        feature_scale: the standard deviation of each feature, 0 for dead ones, shape (*shape).
        budget: mean |δ| over live features, in standard deviations.
        hidden: width of the network's hidden layers.

    >>> view = Viewmaker(torch.ones(3), budget=0.5, hidden=4)
    >>> moved = view(Batch(torch.zeros(2, 3), torch.arange(2))).x
    >>> bool((moved.abs().mean(dim=1) - 0.5).abs().max() < 1e-6)
    True
    """

    adversarial = True
    feature_scale: Tensor

    def __init__(self, feature_scale: Tensor, *, budget: Positive = 0.05, hidden: Size = HIDDEN) -> None:
        super().__init__()
        self.budget = budget
        self.register_buffer("feature_scale", feature_scale)
        dim = feature_scale.numel()
        self.network = MLPEncoder((2 * dim,), hidden=hidden, out_features=dim)

    @classmethod
    def build(cls, site: Site, *, hidden: Size | None = None, **options: Any) -> Viewmaker:
        """Return the view in the units of the data. By default it is as wide as the encoder's hidden layers."""
        width = getattr(site.encoder, "hidden", HIDDEN) if hidden is None else hidden
        return cls(site.numeric_unit, hidden=width, **options)

    def forward(self, batch: Batch) -> Batch:
        """Return the perturbed batch."""
        x = batch.x.flatten(1)
        drawn = torch.rand_like(x, generator=batch.generator)
        perturbation = self.network(torch.cat([x, drawn], dim=1)).reshape(batch.x.shape)
        return batch.moved(batch.x + within_budget(perturbation, self.feature_scale, budget=self.budget))
