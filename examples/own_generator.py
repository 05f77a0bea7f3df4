"""A generator of one's own: noise whose σ varies smoothly along a signal."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise import PiNDA


class Smooth(nn.Module):
    """A few numbers along a signal, with straight lines between them: the same σ for every sample.

    A generator maps samples (m, *shape) to (m, outputs, *shape), or as here to one entry for all of them. Output 0
    becomes σ, output 1, where the mean is learned, becomes μ.
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, *, knots: int = 8) -> None:
        super().__init__()
        self.length = shape[0]
        self.raw = nn.Parameter(torch.zeros(1, outputs, knots))

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (1, outputs, length); 0 is the initial σ."""
        return F.interpolate(self.raw, size=self.length, mode="linear", align_corners=True)


def main() -> None:
    """Learn from signals that differ in their middle alone, and print where σ has grown and where it has shrunk."""
    rng = np.random.default_rng(0)
    time = np.linspace(0, 1, 48)
    bump = np.exp(-(((time - 0.5) / 0.12) ** 2))
    X = rng.normal(size=(800, 1)) * bump * 3 + rng.normal(size=(800, 48))
    for generator in ("global", Smooth, {"name": Smooth, "knots": 5}):
        model = PiNDA(16, hidden=128, generator=generator, noise_learning_rate=0.01, epochs=10, random_state=0).fit(X)
        change = model.noise_scale(X[:1])[0] / model.noise_.initial_scale.numpy()
        weights = sum(weight.numel() for weight in model.noise_.parameters())
        print(f"{weights:2d} numbers, σ / initial σ along the signal: {' '.join(f'{s:.2f}' for s in change[::6])}")


if __name__ == "__main__":
    main()
