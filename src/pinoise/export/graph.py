"""What an exported graph computes, as torch modules: from samples as the data holds them to what is wanted of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from pinoise.data.layout import AS_IS, to_image_layout, undo_image_layout
from pinoise.data.standardizer import Standardizer
from pinoise.networks import Embedding
from pinoise.noise import PiNoise


class Standardize(nn.Module):
    """A ``Standardizer`` for a graph: from samples (m, *shape) as the data holds them to standardised ones, float32.

    >>> standardizer = Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> Standardize(standardizer)(torch.tensor([[3.0, 7.0]], dtype=torch.float64))
    tensor([[1., 0.]])
    """

    mean: Tensor
    inverse_scale: Tensor
    tails_mean: Tensor
    tails_inverse_scale: Tensor
    several: Tensor

    def __init__(self, standardizer: Standardizer) -> None:
        super().__init__()
        self.layout = standardizer.layout
        self.unit_rows = standardizer.unit_rows
        self.is_compressed = standardizer.tails is not None
        live = standardizer.live
        # Features with large offsets need double precision; pixels are small numbers.
        self.dtype = torch.float64 if self.layout == AS_IS else torch.float32
        self._keep("mean", standardizer.mean, self.dtype)
        self._keep("inverse_scale", 1 / np.where(live, standardizer.scale, np.inf), self.dtype)
        if standardizer.tails is not None:  # onnxruntime has arcsinh in single precision alone
            self._keep("tails_mean", standardizer.tails.mean, torch.float32)
            self._keep("tails_inverse_scale", 1 / np.where(live, standardizer.tails.scale, np.inf), torch.float32)
            self._keep("several", standardizer.several, torch.bool)  # the values of categories have no tails

    def _keep(self, name: str, values: np.ndarray, dtype: torch.dtype) -> None:
        self.register_buffer(name, torch.from_numpy(np.array(values)).to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return standardised samples; images have their channels first."""
        x = to_image_layout(x.to(self.dtype), self.layout)
        if self.unit_rows:
            norms = x.square().flatten(1).sum(dim=1).sqrt().reshape(-1, *(1 for _ in x.shape[1:]))
            x = x / torch.where(norms > 0, norms, 1)
        standard = ((x - self.mean) * self.inverse_scale).float()
        if self.is_compressed:
            nearer = (torch.asinh(standard) - self.tails_mean) * self.tails_inverse_scale
            return torch.where(self.several, standard, nearer)
        return standard


class EmbeddingGraph(nn.Module):
    """From samples as the data holds them to their embedding.

    >>> standardizer = Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> embedding = Embedding.measured(nn.Linear(2, 3), [torch.eye(2)], name="joined")
    >>> [z.shape for z in EmbeddingGraph(standardizer, embedding)(torch.zeros(4, 2))]
    [torch.Size([4, 5])]
    """

    outputs = ("embedding",)

    def __init__(self, standardizer: Standardizer, embedding: Embedding) -> None:
        super().__init__()
        self.standardize = Standardize(standardizer)
        self.embedding = embedding

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the embedding (m, features)."""
        return (self.embedding(self.standardize(x)),)


class NoiseGraph(nn.Module):
    """From samples to σ(x) in the units of x and in standard deviations, and to μ(x) in the units of x if learned.

    The outputs have the shape of x. With n ~ N(0, I), x + μ + σ ⊙ n is a sample with independent noise.

    >>> standardizer = Standardizer.fit(np.array([[1.0, 5.0], [5.0, 5.0]]))
    >>> noise = PiNoise(2, generator="constant", feature_scale=torch.tensor([1.0, 0.0]))
    >>> NoiseGraph(standardizer, noise)(torch.zeros(1, 2, dtype=torch.float64))
    (tensor([[2., 0.]]), tensor([[1., 0.]]))
    """

    scale: Tensor
    tails_scale: Tensor

    def __init__(self, standardizer: Standardizer, noise: PiNoise) -> None:
        super().__init__()
        self.standardize = Standardize(standardizer)
        self.noise = noise
        self.learns_mean = noise.outputs == 2
        self.outputs = ("sigma", "relative_sigma", *(["mean"] if self.learns_mean else []))
        self.register_buffer("scale", torch.from_numpy(standardizer.scale).float())
        if standardizer.tails is not None:
            self.register_buffer("tails_scale", torch.from_numpy(standardizer.tails.scale).float())

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the parameters of the noise, each (m, *shape)."""
        standard = self.standardize(x)
        unit = self._unit(standard)
        found = [self.noise.scale(standard) * unit, self.noise.relative_scale(standard)]
        if self.learns_mean:
            found.append(self.noise.mean(standard) * unit)
        return tuple(undo_image_layout(each, self.standardize.layout) for each in found)

    def _unit(self, standard: Tensor) -> Tensor:
        """Return the size of a standardised 1 in the units of the data (``Standardizer.units``)."""
        if not self.standardize.is_compressed:
            return self.scale
        # √(1 + sinh²) = cosh
        compressed = standard * self.tails_scale + self.standardize.tails_mean
        return self.scale * torch.where(self.standardize.several, 1, self.tails_scale * torch.cosh(compressed))
