"""SimCL: normalised noise in representation space makes the views."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Positive
from pinoise.methods.base import two_views
from pinoise.methods.simclr import TEMPERATURE, SimCLR
from pinoise.views import Batch


def perturb(representation: Tensor, draw: Tensor, *, strength: float) -> Tensor:
    """f(x) + c · n / ‖n‖.

    >>> perturb(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]), strength=5.0)
    tensor([[3., 4.]])
    """
    return representation + strength * F.normalize(draw, dim=1)


class SimCL(SimCLR):
    """z = head(f(x) + c · n / ‖n‖) for both views, then NT-Xent.

    With one view of x, both perturbed representations start from it. With two, each starts from its own view, so that
    π-noise in the input learns through both.

    Args:
        encoder: f_θ.
        head: the projection head.
        strength: c, the length of the perturbation.
        temperature: τ.
    """

    makes_views = True

    def __init__(
        self, encoder: nn.Module, head: nn.Module, *, temperature: Positive = TEMPERATURE, strength: Positive = 0.2
    ) -> None:
        super().__init__(encoder, head, temperature=temperature)
        self.strength = strength

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return NT-Xent of every sample, shape (m,)."""
        h = self.encode(views).repeat(2, 1) if len(views) == 1 else self.encode(two_views(views, method="simcl"))
        z = self.head(perturb(h, torch.randn_like(h, generator=views[0].generator), strength=self.strength))
        return self.contrast(z)
