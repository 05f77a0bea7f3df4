"""Where learned noise lies in pictures, and where the encoder looks: the border against the rest, for run folders.

python benchmarks/noise_place.py RUN...

The runs behind F1, F4, F6 and F7 are in the folder ``runs`` of the cache. The sensitivity of an encoder to a pixel is
the length of the gradient of its random projections. Figures are means of a region over the mean of the whole picture.
"""

from __future__ import annotations

import sys

import torch
from torch import Tensor, nn

from pinoise.model import load_run
from pinoise.modes import Randomness
from pinoise.training.build import build_encoder
from pinoise.training.metrics import probe_batch

PICTURES, PROJECTIONS, BORDER = 32, 6, 2


def sensitivity(encoder: nn.Module, x: Tensor) -> Tensor:
    """Return the length of the gradient at every pixel, (m, H, W)."""
    squares = torch.zeros(len(x), *x.shape[2:])
    for _ in range(PROJECTIONS):
        given = x.detach().requires_grad_(True)
        z = encoder.eval()(given)
        (gradient,) = torch.autograd.grad((z * torch.randn_like(z)).sum(), given)
        squares += gradient.square().sum(dim=1)
    return squares.sqrt()


def by_region(maps: Tensor) -> str:
    """Return the means at the right and lower border, at the left and upper border, and inside."""
    mean = maps.mean(dim=0)
    far, near = torch.zeros_like(mean, dtype=torch.bool), torch.zeros_like(mean, dtype=torch.bool)
    far[-BORDER:], far[:, -BORDER:] = True, True
    near[:BORDER], near[:, :BORDER] = True, True
    near &= ~far
    return ", ".join(f"{mean[region].mean() / mean.mean():.2f}" for region in (far, near, ~(far | near)))


def common(maps: Tensor) -> float:
    """Return the share of the variance of maps that all pictures have in common."""
    mean = maps.mean(dim=0)
    return float(mean.var(correction=0) / (mean.var(correction=0) + (maps - mean).square().mean()))


def main(folders: list[str]) -> None:
    print("right and lower border, left and upper border, inside")
    for folder in folders:
        run = load_run(folder)
        assert run.noise is not None
        part = run.own_data().train
        x = probe_batch(run.rows(part.x, where=folder, origin=part.origin)).x[:PICTURES]
        with Randomness(0).lent():
            untrained = sensitivity(build_encoder(run.settings, run.standardizer.shape), x)
            trained = sensitivity(run.embedding.encoder, x)
        with torch.no_grad():
            sigma = run.noise.relative_scale(x).mean(dim=1)
        print(f"{run.noise.distribution}, mean {run.settings.noise.mean}, normalize {run.settings.noise.normalize}:")
        print(f"  σ {by_region(sigma)}; common to all pictures: {common(sigma):.2f}")
        print(f"  sensitivity, trained {by_region(trained)}; untrained {by_region(untrained)}")


if __name__ == "__main__":
    main(sys.argv[1:])
