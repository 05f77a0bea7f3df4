"""The one module that is trained: views, a method and an objective, composed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from pinoise.methods import Method
from pinoise.noise import Objective, PiNoise
from pinoise.views import Batch, Pairing


class Step(NamedTuple):
    """What one training step computes."""

    loss: Tensor  # (): what is minimised
    losses: Tensor  # (m,): ℓ of every sample


class ContrastiveModel(nn.Module):
    """PiNDA and its relatives as a composition: a pairing makes views, a method losses, an objective the goal.

    >>> import torch
    >>> from pinoise.methods import SimCLR
    >>> from pinoise.networks import MLPEncoder, ProjectionHead
    >>> from pinoise.noise import Paper
    >>> from pinoise.views import PiNoiseView
    >>> model = ContrastiveModel(
    ...     pairing=Pairing("identity-noise", noise=PiNoiseView(PiNoise(3, hidden=4))),
    ...     method=SimCLR(MLPEncoder((3,), hidden=4, out_features=2), ProjectionHead(2)),
    ...     objective=Paper(),
    ... )
    >>> model(Batch(torch.randn(5, 3), torch.arange(5))).losses.shape
    torch.Size([5])
    """

    def __init__(self, *, pairing: Pairing, method: Method, objective: Objective) -> None:
        super().__init__()
        self.pairing = pairing
        self.method = method
        self.objective = objective

    def forward(self, batch: Batch) -> Step:
        """Return the scalar to minimise and the loss of every sample."""
        if self.pairing.keeps_original and self.noise is not None and self.noise.shares_features:
            # x is itself a view, so the features that its noise is made of need no pass of their own.
            batch = batch._replace(features=self.method.encoder(batch.x))
        views = self.pairing(batch)
        losses: Tensor = self.method(views)
        noisy = [view for view in views if view.noise is not None]
        noise, drew = stack_noise(noisy) if noisy else (None, None)
        return Step(self.objective(losses, noise, drew), losses.detach())

    @property
    def noise(self) -> PiNoise | None:
        """The learned noise, None where the views are predefined."""
        return None if self.pairing.noise is None else self.pairing.noise.learned

    def after_step(self) -> None:
        """Let the method update what follows the optimiser."""
        self.method.after_step()


def stack_noise(views: list[Batch]) -> tuple[Tensor | None, Tensor | None]:
    """Join the noise of several views along the batch, with who drew it."""
    noise = torch.cat([view.noise for view in views if view.noise is not None])
    drew = [view.drew for view in views]
    if all(mask is None for mask in drew):
        return noise, None
    return noise, torch.cat(
        [view.rows.new_ones(len(view.rows), dtype=torch.bool) if view.drew is None else view.drew for view in views]
    )
