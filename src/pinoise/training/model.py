"""The module that is trained: views, a method and an objective."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from pinoise.errors import UserError, shown
from pinoise.methods import Method
from pinoise.modes import Randomness
from pinoise.networks import has_batch_norm
from pinoise.noise import Noise, PiNoise
from pinoise.training.objectives import Look, Objective
from pinoise.views import Batch, Pairing


class Step(NamedTuple):
    """What one training step computes."""

    loss: Tensor  # (): what is minimised
    losses: Tensor  # (m,): ℓ of every sample


class ContrastiveModel(nn.Module):
    """PiNDA and related models: a pairing makes views, a method makes losses, an objective makes the loss to minimise.

    Args:
        pairing: makes the views.
        method: makes the losses.
        objective: makes the loss to minimise.
        foreign: whether a part may draw from torch's global generator, as dropout does. The parts of the package draw
            from ``Batch.random`` alone.

    >>> import torch
    >>> from pinoise.methods import SimCLR
    >>> from pinoise.networks import MLPEncoder, ProjectionHead
    >>> from pinoise.training.objectives import Paper
    >>> from pinoise.views import PiNoiseView
    >>> model = ContrastiveModel(
    ...     pairing=Pairing("identity-noise", noise=PiNoiseView(PiNoise(3, hidden=4))),
    ...     method=SimCLR(MLPEncoder((3,), hidden=4, out_features=2), ProjectionHead(2)),
    ...     objective=Paper(),
    ... )
    >>> model(Batch(torch.randn(5, 3), torch.arange(5))).losses.shape
    torch.Size([5])
    """

    def __init__(self, *, pairing: Pairing, method: Method, objective: Objective, foreign: bool = True) -> None:
        super().__init__()
        self.foreign = foreign
        self.pairing = pairing
        self.method = method
        self.objective = objective

    def forward(self, batch: Batch) -> Step:
        """Return the scalar to minimise and the loss of every sample."""
        with self.drawing_from(batch.random):
            return self._step(batch)

    def drawing_from(self, random: Randomness | None) -> AbstractContextManager[None]:
        """Return a context in which all parts draw from a source, those of a user too. None changes nothing."""
        return nullcontext() if random is None else random.feeding(self.foreign)

    def _step(self, batch: Batch) -> Step:
        look = self.look(batch, psi=self.objective.psi)
        further = [self.look(batch, theta=False) for _ in range(self.objective.further_looks)]
        loss = self.objective(look, further)
        if not isinstance(loss, Tensor) or loss.ndim:
            raise UserError(f"the objective returned {shown(loss)}: it must return a scalar like look.losses.mean().")
        return Step(loss, look.losses.detach())

    def look(self, batch: Batch, *, theta: bool = True, psi: float = 1.0) -> Look:
        """Draw views of the batch and compare them.

        Args:
            batch: samples and their rows.
            theta: whether the gradient of the losses reaches the method's weights.
            psi: the factor on the gradient that reaches the noise.
        """
        shares = theta and self.pairing.keeps_original and self.noise is not None and self.noise.shares_features
        if shares and not has_batch_norm(self.method.encoder):  # its features depend on mode and batch
            # x is itself a view, so the noise generator can use the features of that pass.
            batch = batch._replace(features=self.method.encoder(batch.x))
        views = [view.with_gradient(psi) for view in self.pairing(batch)]
        return Look(self._losses(views, theta=theta), *stack_noise(views))

    def clean_losses(self, batch: Batch) -> Tensor:
        """Return ℓ(x) of every sample (m,), with the sample itself as each view."""
        return self._losses([batch] if self.pairing.name == "identity" else [batch, batch], theta=True)

    def _losses(self, views: Sequence[Batch], *, theta: bool) -> Tensor:
        if theta:
            losses: Tensor = self.method(views)
        else:
            frozen = {name: weight.detach() for name, weight in self.method.named_parameters()}
            losses = functional_call(self.method, frozen, (views,))
        size = len(views[0].x)
        if not isinstance(losses, Tensor) or losses.shape != (size,):
            raise UserError(
                f"the method returned {shown(losses)} for {size} samples: it must return one loss per sample."
            )
        return losses

    @property
    def noise(self) -> PiNoise | None:
        """The learned noise, or None if all views are predefined."""
        return None if self.pairing.noise is None else self.pairing.noise.learned

    def after_step(self, step: int, steps: int) -> None:
        """Let the method update its state after the optimiser's step. ``step`` counts from 0 to ``steps`` − 1."""
        self.method.after_step(step, steps)


def stack_noise(views: Sequence[Batch]) -> tuple[Noise | None, Tensor | None]:
    """Concatenate the noise of several views along the batch, and mark the samples that drew it."""
    noisy = [(view, view.noise) for view in views if view.noise is not None]
    if not noisy:
        return None, None
    scales = [noise.scale for _, noise in noisy]
    same = all(scale is scales[0] for scale in scales[1:]) and len(scales[0]) == 1
    noise = Noise(torch.cat([noise.epsilon for _, noise in noisy]), scales[0] if same else torch.cat(scales))
    if all(view.drew is None for view, _ in noisy):
        return noise, None
    return noise, torch.cat(
        [view.rows.new_ones(len(view.rows), dtype=torch.bool) if view.drew is None else view.drew for view, _ in noisy]
    )
