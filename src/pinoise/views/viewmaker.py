"""Viewmaker (Tamkin et al., 2021): a network that perturbs a sample within a budget."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pinoise.views.base import Batch, View, per_sample


def within_budget(perturbation: Tensor, feature_scale: Tensor, *, budget: float) -> Tensor:
    """Rescale a perturbation (m, *shape) so that the mean of its sizes over live features is the budget.

    Args:
        perturbation: in standard deviations.
        feature_scale: the standard deviation of each feature, 0 for dead ones, shape (*shape).
        budget: the mean absolute value wanted, in standard deviations.

    >>> within_budget(torch.tensor([[1.0, 5.0, -3.0]]), torch.tensor([1.0, 0.0, 10.0]), budget=0.5)
    tensor([[ 0.2500,  0.0000, -7.5000]])
    """
    live = feature_scale > 0
    size = (perturbation * live).flatten(1).abs().sum(dim=1) / live.sum()
    return budget * feature_scale * perturbation / per_sample(size.clamp_min(1e-12), perturbation)


class Viewmaker(View):
    """x + δ(x, u) with u uniform noise and ‖δ‖₁ on a budget; trained against the encoder (objective adversarial).

    Args:
        feature_scale: the standard deviation of each feature, 0 for dead ones, shape (*shape).
        budget: mean |δ| over live features, in standard deviations.
        hidden: width of the network.

    >>> view = Viewmaker(torch.ones(3), budget=0.5, hidden=4)
    >>> moved = view(Batch(torch.zeros(2, 3), torch.arange(2))).x
    >>> bool((moved.abs().mean(dim=1) - 0.5).abs().max() < 1e-6)
    True
    """

    feature_scale: Tensor

    def __init__(self, feature_scale: Tensor, *, budget: float = 0.05, hidden: int = 1024) -> None:
        super().__init__()
        self.budget = budget
        self.register_buffer("feature_scale", feature_scale)
        dim = feature_scale.numel()
        self.network = nn.Sequential(
            nn.Linear(2 * dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim)
        )

    def forward(self, batch: Batch) -> Batch:
        """Return the perturbed batch."""
        x = batch.x.flatten(1)
        perturbation = self.network(torch.cat([x, torch.rand_like(x)], dim=1)).reshape(batch.x.shape)
        return batch.moved(batch.x + within_budget(perturbation, self.feature_scale, budget=self.budget))
