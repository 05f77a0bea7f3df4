"""PiNoise: the π-noise generator as one module for anyone's training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Literal, SupportsIndex

import torch
from torch import Tensor, nn

from pinoise.errors import UserError, unknown_choice
from pinoise.noise.distributions import BASE_DRAWS, REPARAMETERISATIONS, Distribution
from pinoise.noise.generators import SharedGenerator, build_generator
from pinoise.noise.penalty import inverse_norm
from pinoise.noise.positive import POSITIVE_MAPS, Positive

Mean = Literal["zero", "learned"]

# Less than this share of a standard deviation is no noise: σ is held there and stops learning, which keeps its
# gradients clear of denormal numbers; arithmetic with those is many times slower.
SMALLEST_SCALE = 1e-6


class PiNoise(nn.Module):
    """Learned noise ε ~ p_ψ(ε|x), added to x (Algorithm 1 of the paper).

    Noise is measured in units of ``feature_scale``, the standard deviation of each feature in the training data; a
    feature whose scale is 0 is dead and gets no noise.

    Args:
        shape: the shape of one sample, or the number of features.
        distribution: ``"gaussian"``, ε = μ + σ ⊙ n, or ``"uniform"``, ε = μ + (2u − 1) ⊙ w.
        mean: ``"zero"`` fixes μ = 0, ``"learned"`` makes it an output of the generator.
        generator: ``"mlp"``, ``"shared"``, ``"constant"``, or a module from (m, *shape) to (m, outputs, *shape) with
            outputs = 1 (scale), or 2 (scale, mean) when the mean is learned.
        positive: the map onto σ ≥ 0, ``"softplus"`` or ``"abs"``.
        initial_scale: σ (or w) where the generator's output is 0, in units of ``feature_scale``.
        feature_scale: a tensor of shape ``shape``; ones if None.
        normalize: if given, every ε is rescaled so that its root mean square over live features, in units of
            ``feature_scale``, is this number.
        hidden: width of the ``mlp`` generator.
        encoder: the encoder whose features the ``shared`` generator reads.

    >>> noise = PiNoise(4, hidden=8)
    >>> x = torch.zeros(3, 4)
    >>> noise(x).shape, noise.scale(x).shape, bool((noise.mean(x) == 0).all())
    (torch.Size([3, 4]), torch.Size([3, 4]), True)
    """

    feature_scale: Tensor

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        distribution: Distribution = "gaussian",
        mean: Mean = "zero",
        generator: str | nn.Module = "mlp",
        positive: Positive = "softplus",
        initial_scale: float = 1.0,
        feature_scale: Tensor | None = None,
        normalize: float | None = None,
        hidden: int = 1024,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.shape = _checked_shape(shape)
        if distribution not in REPARAMETERISATIONS:
            raise unknown_choice("distribution", distribution, REPARAMETERISATIONS)
        if positive not in POSITIVE_MAPS:
            raise unknown_choice("positive map", positive, POSITIVE_MAPS)
        if mean not in ("zero", "learned"):
            raise unknown_choice("mean", mean, ("zero", "learned"))
        if not (initial_scale >= SMALLEST_SCALE and math.isfinite(initial_scale)):
            raise UserError(f"initial_scale is {initial_scale}: it must be a number from {SMALLEST_SCALE:g}.")
        if normalize is not None and not (normalize > 0 and math.isfinite(normalize)):
            raise UserError(f"normalize is {normalize}: it must be a positive number, or None.")
        if hidden < 1:
            raise UserError(f"hidden is {hidden}: the generator's width must be at least 1.")
        self.distribution = distribution
        self.positive = positive
        self.initial_scale = initial_scale
        self.normalize = normalize
        self.outputs = 2 if mean == "learned" else 1
        self.offset = POSITIVE_MAPS[positive].inverse(initial_scale)
        if feature_scale is None:
            feature_scale = torch.ones(self.shape)
        self.register_buffer("feature_scale", _checked_feature_scale(feature_scale, self.shape))
        self.generator = (
            generator
            if isinstance(generator, nn.Module)
            else build_generator(generator, self.shape, outputs=self.outputs, hidden=hidden, encoder=encoder)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return x + ε for a batch (m, *shape)."""
        return x + self.sample(x)

    def sample(self, x: Tensor, draws: int | None = None, features: Tensor | None = None) -> Tensor:
        """Draw ε of shape (m, *shape), or ``draws`` independent ones of shape (draws, m, *shape).

        ``features`` are the encoder's of x, for a ``shared`` generator, where the caller has them already.
        """
        scale, mean = self._parameters_of_noise(x, features)
        if draws is not None:
            scale = scale.expand(draws, *scale.shape)
        draw = BASE_DRAWS[self.distribution](scale)
        noise = REPARAMETERISATIONS[self.distribution](mean, scale, draw)
        if self.normalize is not None:
            noise = self.normalize * _unit_rms(noise, self.feature_scale > 0)
        return self.feature_scale * noise

    def scale(self, x: Tensor) -> Tensor:
        """σ(x) (or w(x) of the uniform distribution), in the units of x, shape (m, *shape)."""
        return self.feature_scale * self.relative_scale(x)

    def relative_scale(self, x: Tensor) -> Tensor:
        """σ(x) in units of each feature's training standard deviation, 0 for dead features.

        Normalised noise has the σ that it gets by being normalised, up to the chance in one draw's own size.
        """
        scale, mean = self._parameters_of_noise(x)
        if self.normalize is None:
            return scale
        size = (scale.square() + torch.as_tensor(mean).square()).flatten(1)  # E ε² of every feature
        live = (self.feature_scale > 0).sum()
        rms = (size.sum(dim=1) / live).sqrt().clamp_min(torch.finfo(scale.dtype).tiny ** 0.5)
        return scale * (self.normalize / rms).reshape((-1,) + (1,) * len(self.shape))

    def mean(self, x: Tensor) -> Tensor:
        """μ(x) in the units of x, shape (m, *shape)."""
        mean = self._parameters_of_noise(x)[1]
        return self.feature_scale * mean if isinstance(mean, Tensor) else torch.zeros_like(x)

    def penalty(self, noise: Tensor) -> Tensor:
        """1 / mean‖ε‖₂, the paper's guard against vanishing noise; the caller weights it with λ."""
        return inverse_norm(noise)

    @property
    def shares_features(self) -> bool:
        """Whether the generator reads the encoder's features of x."""
        return isinstance(self.generator, SharedGenerator)

    def _parameters_of_noise(self, x: Tensor, features: Tensor | None = None) -> tuple[Tensor, Tensor | float]:
        """The relative σ and μ of every sample: one pass through the generator."""
        if x.shape[1:] != self.shape:
            raise UserError(f"samples have shape {tuple(x.shape[1:])}: this noise was made for {self.shape}.")
        live = (self.feature_scale > 0).to(x.dtype)
        raw = self.generator(x, features) if features is not None and self.shares_features else self.generator(x)
        size = math.prod(self.shape) * self.outputs
        if raw.numel() not in (size, x.shape[0] * size):
            raise UserError(
                f"the generator returned shape {tuple(raw.shape)} for {x.shape[0]} samples: "
                f"it must return {(x.shape[0], self.outputs, *self.shape)}, or one entry for all samples."
            )
        raw = raw.reshape(-1, self.outputs, *self.shape)
        scale = live * POSITIVE_MAPS[self.positive].forward(raw[:, 0] + self.offset).clamp_min(SMALLEST_SCALE)
        return scale.expand_as(x), (live * raw[:, 1]).expand_as(x) if self.outputs == 2 else 0.0

    def extra_repr(self) -> str:
        """Name the settings in the module's repr."""
        mean = "learned" if self.outputs == 2 else "zero"
        return f"{self.shape}, distribution={self.distribution}, mean={mean}, initial_scale={self.initial_scale}"


def _unit_rms(noise: Tensor, live: Tensor) -> Tensor:
    """Rescale every sample's noise to root mean square 1 over its live features."""
    dims = tuple(range(-live.ndim, 0))
    norm = torch.linalg.vector_norm(noise, dim=dims, keepdim=True)
    # Squares of smaller numbers underflow: their norm is 0, and dividing by less would make the noise explode.
    floor = torch.finfo(noise.dtype).tiny ** 0.5
    unit: Tensor = noise * live.sum().sqrt() / norm.clamp_min(floor)
    return unit


def _checked_shape(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    # SupportsIndex also covers numpy's integers, which shapes of arrays are made of.
    sizes = (index(shape),) if isinstance(shape, SupportsIndex) else tuple(index(size) for size in shape)
    if not sizes or any(size < 1 for size in sizes):
        raise UserError(f"shape is {shape}: every size of a sample must be at least 1.")
    return sizes


def _checked_feature_scale(feature_scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    if feature_scale.shape != shape:
        raise UserError(f"feature_scale has shape {tuple(feature_scale.shape)}: it must be {shape}.")
    wrong = feature_scale[~torch.isfinite(feature_scale) | (feature_scale < 0)]
    if len(wrong):
        raise UserError(
            f"feature_scale has an entry {float(wrong[0])}: "
            "it holds standard deviations, which are finite and at least 0 (0 for a dead feature)."
        )
    return feature_scale.detach().to(torch.get_default_dtype()).clone()
