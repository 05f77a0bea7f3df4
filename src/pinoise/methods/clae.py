"""CLAE (Ho and Vasconcelos, 2020): the adversarial example of a view is a further positive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from pinoise.choices import NonNegative, Positive
from pinoise.methods.base import two_views
from pinoise.methods.simclr import TEMPERATURE, SimCLR, nt_xent
from pinoise.networks.blocks import frozen_statistics
from pinoise.views import Batch, Site


def adversarial_step(gradient: Tensor, *, strength: float, feature_scale: Tensor) -> Tensor:
    """e s ⊙ sign ∇ₓℓ with s the standard deviation of each feature: x_adv is x plus this.

    >>> scale = torch.tensor([1.0, 4.0])
    >>> adversarial_step(torch.tensor([0.3, -2.0]), strength=0.5, feature_scale=scale)
    tensor([ 0.5000, -2.0000])
    """
    return strength * feature_scale * gradient.sign()


class CLAE(SimCLR):
    """NTX(z, z⁺) + α · NTX(z, z_adv), where x_adv is the first view after the step that raises NTX(z, z⁺) the most.

    Both views pass the encoder with gradient, so π-noise in either learns. The adversarial step itself is a constant.
    A single view is its own partner z⁺, so that the adversarial example is the only augmentation.

    Args:
        encoder: f_θ.
        head: the projection head.
        feature_scale: the standard deviation of each feature, 0 for dead ones.
        strength: e, the size of the adversarial step in standard deviations.
        weight: α, the weight of the adversarial term.
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
    ) -> None:
        super().__init__(encoder, head, temperature=temperature)
        self.strength = strength
        self.weight = weight
        self.register_buffer("feature_scale", feature_scale)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method with a new head, and the units of the data for its adversarial step."""
        return cls(site.encoder, site.projection_head(), site.unit, **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        if len(views) != 1:
            views = two_views(views, method="clae")
        step = self._adversarial_step(views[0].x.detach(), views[-1].x.detach())
        adversarial = views[0].moved(views[0].x + step)
        *clean, h_adversarial = self.encode([*views, adversarial])
        z, partner, z_adversarial = self.head(torch.cat([clean[0], clean[-1], h_adversarial])).chunk(3)
        return nt_xent(z, partner, temperature=self.temperature) + self.weight * nt_xent(
            z, z_adversarial, temperature=self.temperature
        )

    def guessing_loss(self, batch_size: int) -> float | None:
        """(1 + α) log(2m − 1), for the two comparisons."""
        return (1 + self.weight) * math.log(2 * batch_size - 1)

    def _adversarial_step(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the step of the first view that raises its loss the most, without gradient."""
        # The step needs a gradient even if the loss is only measured. Batch statistics must count each sample once.
        with torch.enable_grad(), frozen_statistics(self):
            x = first.clone().requires_grad_()
            z = self.head(self.encoder(torch.cat([x, second])))
            loss = nt_xent(*z.chunk(2), temperature=self.temperature).sum()
            (gradient,) = torch.autograd.grad(loss, x)
        return adversarial_step(gradient, strength=self.strength, feature_scale=self.feature_scale)
