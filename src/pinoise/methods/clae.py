"""CLAE (Ho and Vasconcelos, 2020, arXiv:2010.12050): the adversarial example of a view is a further positive.

As in the authors' code, the adversarial example of x is searched against x itself, and batch normalisation treats
adversarial examples as a batch of their own, which leaves no trace in the running statistics. Their auxiliary layers
also have a scale and shift of their own; here these are shared. The step leaves categories as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from pinoise.choices import NonNegative, Positive
from pinoise.methods.base import two_views
from pinoise.methods.simclr import TEMPERATURE, SimCLR
from pinoise.modes import frozen_statistics, has_batch_norm
from pinoise.views import Batch, Site


def adversarial_step(gradient: Tensor, *, strength: float, feature_scale: Tensor) -> Tensor:
    """e s ⊙ sign ∇ₓℓ with s the standard deviation of each feature: x_adv is x plus this.

    >>> scale = torch.tensor([1.0, 4.0])
    >>> adversarial_step(torch.tensor([0.3, -2.0]), strength=0.5, feature_scale=scale)
    tensor([ 0.5000, -2.0000])
    """
    return strength * feature_scale * gradient.sign()


class CLAE(SimCLR):
    """NTX(z, z⁺) + α · NTX(z, z_adv), where x_adv is the first view after the step that raises NTX(z, z_adv) the most.

    Both views pass the encoder with gradient, so π-noise in either learns. The adversarial step itself is a constant.
    A single view is its own partner z⁺, so that the adversarial example is the only augmentation.

    Args:
        encoder: f_θ.
        head: the projection head.
        feature_scale: the standard deviation of each feature, 0 for dead ones.
        strength: e, the size of the adversarial step in standard deviations.
        weight: α, the weight of the adversarial term.
        against: what the step moves away from: the view ``"itself"``, as published, or its ``"partner"``.
        temperature: τ.
    """

    makes_views = True
    feature_scale: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        feature_scale: Tensor,
        *,
        temperature: Positive = TEMPERATURE,
        strength: Positive = 0.5,
        weight: NonNegative = 1.0,
        against: Literal["itself", "partner"] = "itself",
    ) -> None:
        super().__init__(encoder, head, temperature=temperature)
        self.strength = strength
        self.weight = weight
        self.against = against
        self.register_buffer("feature_scale", feature_scale)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with a new head, and the units of the data for its adversarial step."""
        return cls(site.encoder, site.projection_head(), site.numeric_unit, **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        if len(views) != 1:
            views = two_views(views, method="clae")
        other = views[0] if self.against == "itself" else views[-1]
        step = self._adversarial_step(views[0].x.detach(), other.x.detach())
        together = self._encode_apart([*views, views[0].moved(views[0].x + step)])
        *clean, adversarial = self.head(together).chunk(len(views) + 1)
        apart = self.contrast(torch.cat([clean[0], adversarial]))
        return self.contrast(torch.cat([clean[0], clean[-1]])) + self.weight * apart

    def _encode_apart(self, views: Sequence[Batch]) -> Tensor:
        """Return f_θ of every view. With batch normalisation, the last, adversarial one is a batch of its own."""
        if not has_batch_norm(self.encoder):
            return self.encode(views)
        clean = self.encode(views[:-1])
        with frozen_statistics(self.encoder):
            return torch.cat([clean, self.encode(views[-1:])])

    def guessing_loss(self, batch_size: int) -> float | None:
        """(1 + α) log(2m − 1), for the two comparisons."""
        of_one = super().guessing_loss(batch_size)
        return None if of_one is None else (1 + self.weight) * of_one

    def _adversarial_step(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the step of the first view that raises its loss against the second the most, without gradient."""
        # The step needs a gradient even if the loss is only measured. Batch statistics must count each sample once.
        with torch.enable_grad(), frozen_statistics(self):
            x = first.clone().requires_grad_()
            loss = self.contrast(self.head(self.encoder(torch.cat([x, second])))).sum()
            (gradient,) = torch.autograd.grad(loss, x)
        return adversarial_step(gradient, strength=self.strength, feature_scale=self.feature_scale)
