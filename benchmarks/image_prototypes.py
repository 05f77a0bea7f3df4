"""Prototypes of noise on images that ``image_noise.py`` tries: parts of a user, which the library does not have."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from pinoise.networks import evaluating
from pinoise.networks.resnet import ResNet18
from pinoise.views import Batch, Site, View
from pinoise.views.images import SimCLRPipeline

RATE = 10  # the factor on the learning rate of a single number, as in ``noise.module``


def coarse_noise(x: Tensor, grid: int, *, smooth: bool, generator: Generator | None) -> Tensor:
    """Draw noise on a coarse grid and enlarge it to images (m, C, H, W), with variance 1 on average."""
    m, channels, height, width = x.shape
    drawn = torch.randn(m, channels, grid, grid, device=x.device, generator=generator)
    if not smooth:
        return F.interpolate(drawn, (height, width), mode="nearest")
    noise = F.interpolate(drawn, (height, width), mode="bilinear", align_corners=False)
    return noise / noise.square().mean().sqrt()


def fixed_entropy(raw: Tensor, sigma: float) -> Tensor:
    """Return scales whose geometric mean is σ."""
    return sigma * (RATE * (raw - raw.mean())).exp()


class Coarse(View):
    """Noise on a coarse grid: smooth (low-frequency), or constant in each patch."""

    for_images: ClassVar[bool] = True

    def __init__(self, *, sigma: float = 0.5, grid: int = 4, smooth: bool = True) -> None:
        super().__init__()
        self.sigma, self.grid, self.smooth = sigma, grid, smooth

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise."""
        noise = coarse_noise(batch.x, self.grid, smooth=self.smooth, generator=batch.generator)
        return batch.moved(batch.x + self.sigma * noise)


class Bands(View):
    """Noise of several frequencies, with a learned scale for each band and channel and a fixed sum of log scales."""

    for_images: ClassVar[bool] = True

    def __init__(self, channels: int, *, sigma: float = 0.5, grids: tuple[int, ...] = (1, 3, 6, 12, 24)) -> None:
        super().__init__()
        self.sigma, self.grids = sigma, grids
        self.raw = nn.Parameter(torch.zeros(len(grids), channels))

    @classmethod
    def build(cls, site: Site, **options: Any) -> Bands:
        """Return the noise for the channels of the data."""
        return cls(site.shape[0], **options)

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise in all bands."""
        scale = fixed_entropy(self.raw, self.sigma) / math.sqrt(len(self.grids))
        drawn = [coarse_noise(batch.x, grid, smooth=True, generator=batch.generator) for grid in self.grids]
        noise = sum(part * each[:, None, None] for part, each in zip(drawn, scale, strict=True))
        return batch.moved(batch.x + noise)


class Scales(View):
    """Noise whose grid every sample draws: from one number for the image to one for every pixel."""

    for_images: ClassVar[bool] = True

    def __init__(self, *, sigma: float = 0.5, grids: tuple[int, ...] = (1, 3, 6, 12, 24)) -> None:
        super().__init__()
        self.sigma, self.grids = sigma, grids

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise."""
        x, generator = batch.x, batch.generator
        drawn = torch.stack([coarse_noise(x, grid, smooth=True, generator=generator) for grid in self.grids])
        which = torch.randint(len(self.grids), (len(x),), device=x.device, generator=generator)
        return batch.moved(x + self.sigma * drawn[which, torch.arange(len(x), device=x.device)])


class FeatureNeighbours(View):
    """A neighbour by the cosine of the encoder's features, augmented, as in NNCLR. Features are found every 20 steps.

    In the first ``wait`` draws a sample is its own neighbour, because the features say little yet.
    """

    for_images: ClassVar[bool] = True
    by_row = True

    def __init__(self, site: Site, *, k: int = 5, wait: int = 40, every: int = 20) -> None:
        super().__init__()
        self.pipeline = SimCLRPipeline.build(site)
        self.site = (site,)
        self.k, self.wait, self.every = k, wait, every
        self.drawn = 0
        self.table = torch.arange(len(site.rows))[:, None]

    @classmethod
    def build(cls, site: Site, *, k: int = 5, wait: int = 40, every: int = 20) -> FeatureNeighbours:
        """Return the view for the training rows and the encoder."""
        return cls(site, k=k, wait=wait, every=every)

    @torch.no_grad()
    def _find(self) -> None:
        site = self.site[0]
        parts = torch.arange(len(site.rows)).split(256)
        with evaluating(site.encoder):
            z = F.normalize(torch.cat([site.encoder(site.rows[part]) for part in parts]), dim=1)
        z = F.normalize(z - z.mean(dim=0), dim=1)
        self.table = (z @ z.T).fill_diagonal_(-1).topk(self.k, dim=1).indices

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return augmented neighbours."""
        if self.drawn >= self.wait and self.drawn % self.every == 0 and self.training:
            self._find()
        self.drawn += self.training
        near = self.table[batch.rows]  # (m, k)
        drawn = []
        for _ in range(times):
            place = torch.randint(near.shape[1], (len(near), 1), generator=batch.generator)
            x = self.site[0].rows[near.gather(1, place).squeeze(1)]
            drawn.append(self.pipeline(batch.moved(x)))
        return tuple(drawn)

    def forward(self, batch: Batch) -> Batch:
        """Return one augmented neighbour of every sample."""
        return self.draw(batch, 1)[0]


class NoisyResNet(ResNet18):
    """A ResNet18 that adds noise to the maps after a stage while it trains, with a learned scale for each channel.

    ``kind``: independent noise, or a difference of two other samples' maps.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        width: int = 16,
        sigma: float = 0.5,
        kind: Literal["gaussian", "differences"] = "gaussian",
    ) -> None:
        super().__init__(shape, width=width)
        self.sigma, self.kind = sigma, kind
        self.raw = nn.Parameter(torch.zeros(width))

    def maps(self, x: Tensor) -> Tensor:
        """Return the third stage's maps, with noise after the first stage while training."""
        h = self.layer1(self.maxpool(self.relu(self.bn1(self.conv1(x)))))
        if self.training:
            h = h + self._noise(h)
        maps: Tensor = self.layer3(self.layer2(h))
        return maps

    def _noise(self, h: Tensor) -> Tensor:
        size = h.detach().std(dim=(0, 2, 3), keepdim=True)
        scale = fixed_entropy(self.raw, self.sigma)[:, None, None] * size
        if self.kind == "gaussian":
            return scale * torch.randn_like(h)
        p, q = torch.randint(len(h), (2, len(h)))
        fixed = h.detach()
        return scale / size * (fixed[p] - fixed[q]) / math.sqrt(2)
