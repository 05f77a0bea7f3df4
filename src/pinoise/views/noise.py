"""Views that add noise: learned, or Gaussian with a given standard deviation."""

from __future__ import annotations

import torch
from torch import Tensor

from pinoise.noise import PiNoise
from pinoise.views.base import Batch, View


class PiNoiseView(View):
    """x + ε with ε ~ p_ψ(ε|x); the gradient reaches ψ.

    >>> view = PiNoiseView(PiNoise(3, hidden=4))
    >>> view(Batch(torch.zeros(2, 3), torch.arange(2))).noise.epsilon.shape
    torch.Size([2, 3])
    """

    def __init__(self, noise: PiNoise) -> None:
        super().__init__()
        self.noise = noise

    @property
    def learned(self) -> PiNoise | None:
        """The noise itself."""
        return self.noise

    @property
    def by_row(self) -> bool:
        """Noise along the data moves a sample to another row."""
        return self.noise.support is not None

    def forward(self, batch: Batch) -> Batch:
        """Return x + ε."""
        return self.draw(batch, 1)[0]

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return independent draws from one pass through the generator."""
        noises = self.noise.draw(batch.x, times, features=batch.features, rows=batch.rows)
        return tuple(Batch(batch.x + noise.epsilon, batch.rows, noise) for noise in noises)

    def before_step(self, step: int) -> None:
        """Let the noise's neighbours follow its σ."""
        self.noise.before_step(step)


class GaussianNoise(View):
    """x + σ s ⊙ n with n ~ N(0, I) and s the standard deviation of each feature (the paper's Random Noise).

    >>> GaussianNoise(torch.zeros(3), sigma=2.0)(Batch(torch.ones(2, 3), torch.arange(2))).x
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """

    feature_scale: Tensor

    def __init__(self, feature_scale: Tensor, *, sigma: float = 1.0) -> None:
        super().__init__()
        self.sigma = sigma
        self.register_buffer("feature_scale", feature_scale)

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise."""
        return batch.moved(batch.x + self.sigma * self.feature_scale * torch.randn_like(batch.x))
