"""σ of p_ψ(ε|x): maps from a generator's raw numbers to σ ≥ 0, what keeps σ from vanishing, and both in one module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, SupportsIndex

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Distribution, ScaleMap
from pinoise.errors import UserError
from pinoise.modes import evaluating
from pinoise.noise.columns import Columns
from pinoise.noise.draw import FAMILIES, expected_rms, unit_rms
from pinoise.noise.generators import GlobalGenerator, SharedGenerator

# c of ``fixed_entropy``: the largest distance of a feature's log σ from the mean over features, before centring.
FARTHEST = 2.0

_STEEPNESS = 3.0  # slope of log σ at an output of 0, so that one learning rate suits single numbers and networks


def softplus(raw: Tensor, initial: Tensor, live: Tensor) -> Tensor:
    """Soft version of max(0, ·), shifted so that 0 gives ``initial``.

    >>> softplus(torch.zeros(1), torch.tensor([0.25]), torch.ones(1))
    tensor([0.2500])
    """
    return F.softplus(raw + inverse_softplus(initial))


def absolute(raw: Tensor, initial: Tensor, live: Tensor) -> Tensor:
    """Absolute value, shifted so that 0 gives ``initial``.

    >>> absolute(torch.tensor([-1.0]), torch.tensor([0.25]), torch.ones(1))
    tensor([0.7500])
    """
    return (raw + initial).abs()


def fixed_entropy(raw: Tensor, initial: Tensor, live: Tensor) -> Tensor:
    """log σ_j = c·tanh(3 g_j / c) − mean_j(·) + mean_j log r_j: noise of fixed entropy.

    The entropy of Gaussian noise is Σ_j log σ_j up to a constant. For every output of the generator it equals the
    entropy at σ = r: noise only moves between features and can neither vanish nor explode. No two features differ by
    more than a factor e^2c. A feature whose r is farther than a factor e^c from the geometric mean starts at the limit.

    Args:
        raw: the generator's output, shape (m, *shape).
        initial: r > 0, shape (*shape).
        live: which features take part, shape (*shape).

    >>> r = torch.tensor([0.5, 2.0])
    >>> fixed_entropy(torch.zeros(1, 2), r, torch.ones(2))
    tensor([[0.5000, 2.0000]])
    >>> fixed_entropy(torch.tensor([[0.1, -0.4]]), r, torch.ones(2)).prod()
    tensor(1.)
    """
    live = live.to(raw.dtype)
    log_initial = initial.to(raw.dtype).log()
    level = (live * log_initial).sum() / live.sum().clamp_min(1)
    start = torch.atanh(((log_initial - level) / FARTHEST).clamp(-0.97, 0.97)) * FARTHEST / _STEEPNESS
    bounded = FARTHEST * torch.tanh(_STEEPNESS / FARTHEST * (raw + start))
    dims = tuple(range(-live.ndim, 0))
    mean = (live * bounded).sum(dim=dims, keepdim=True) / live.sum().clamp_min(1)
    return torch.exp(bounded - mean + level)


def inverse_softplus(value: Tensor) -> Tensor:
    """The number whose softplus is ``value``.

    >>> F.softplus(inverse_softplus(torch.tensor(0.25)))
    tensor(0.2500)
    """
    return value + torch.log(-torch.expm1(-value))


SCALE_MAPS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "softplus": softplus,
    "abs": absolute,
    "fixed-entropy": fixed_entropy,
}
PRIOR_WEIGHT = 0.3  # λ: how strongly the learned σ is held near r

SMALLEST_PRIOR = 0.1  # the smallest median of the prior, in standard deviations


def prior_scale(spread: Tensor, feature_scale: Tensor, columns: Columns | None = None) -> Tensor:
    """Return r in standard deviations of each feature, in a range that noise of fixed entropy can reach.

    r is kept within a factor e^±2 of its median over live features. Otherwise a feature in which all neighbours are
    equal, for example because of duplicates, would have log r = −∞. If neighbours hardly differ at all, r is raised to
    a median of 0.1, because equal views teach nothing. A dead feature, whose scale is 0, gets r = 1 and no noise.

    Args:
        spread: the spread of neighbours, shape (*shape).
        feature_scale: the standard deviation of each feature, shape (*shape).
        columns: the columns of several features, which share one r.

    >>> prior_scale(torch.tensor([0.0, 1.0, 2.0, 9.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]))
    tensor([0.2707, 1.0000, 2.0000, 9.0000, 1.0000])
    """
    if columns is not None:
        return columns.spread(prior_scale(columns.lengths(spread), columns.largest(feature_scale)))
    live = feature_scale > 0
    relative = torch.where(live, spread / torch.where(live, feature_scale, 1), 0)
    differing = relative[relative > 0]
    middle = differing.median() if differing.numel() else relative.new_ones(())
    held = relative.clamp(middle * math.exp(-FARTHEST), middle * math.exp(FARTHEST))
    return torch.where(live, held * (SMALLEST_PRIOR / middle).clamp_min(1), 1)


def _own(each: Tensor) -> Tensor:
    return each


def mean_log_ratio_squared(
    scale: Tensor, prior: Tensor, drew: Tensor | None = None, *, joined: Callable[[Tensor], Tensor] = _own
) -> Tensor:
    """Mean over samples and features of (log σ − log r)², to second order a KL divergence from noise of scale r.

    Args:
        scale: σ, shape (m, *shape), or (1, *shape) for all samples. Dead features have σ = 0 and do not count.
        prior: r, shape (*shape).
        drew: which samples drew the noise, shape (m,); all of them if None.
        joined: from the numbers of these samples to those of all, where several processes have some samples each.

    >>> mean_log_ratio_squared(torch.tensor([[1.0, 0.0, torch.e]]), torch.ones(3))
    tensor(0.5000)
    """
    live = scale > 0
    square = torch.where(live, torch.where(live, scale, 1).log() - prior.log(), 0).square().flatten(1).sum(dim=1)
    each = square / live.flatten(1).sum(dim=1).clamp_min(1)
    if drew is None or len(each) == 1:
        return each.mean()
    return joined(torch.where(drew, each, 0)).sum() / joined(drew.to(each.dtype)).sum().clamp_min(1)


def inverse_norm(noise: Tensor, drew: Tensor | None = None, *, joined: Callable[[Tensor], Tensor] = _own) -> Tensor:
    """1 / mean‖ε‖₂ over the samples that received noise (the paper's penalty on vision data).

    Args:
        noise: ε, of shape (m, *shape).
        drew: which samples received noise, of shape (m,); all of them if None.
        joined: as in ``mean_log_ratio_squared``.

    >>> inverse_norm(torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    tensor(0.2000)
    """
    norms: Tensor = torch.linalg.vector_norm(noise.flatten(1), dim=1)  # (m,)
    if drew is None:
        return joined(norms).mean().reciprocal()
    # If no sample received noise, there is nothing to penalise.
    count = joined(drew.to(norms.dtype)).sum()
    total = joined(torch.where(drew, norms, 0)).sum()
    return torch.where(count > 0, count / torch.where(count > 0, total, 1), 0)


# The smallest σ, in standard deviations; less has no effect as noise. σ stays there and stops learning, which keeps its
# gradients away from denormal numbers. Arithmetic with denormal numbers is many times slower.
SMALLEST_SCALE = 1e-6

# The learning rate of a ``global`` generator, as a multiple of the encoder's. Its numbers must move as far as the
# output of a network, but a network's output sums the steps of many weights.
GLOBAL_RATE = 10

_TYPICAL_ROWS = 256


class Sigma(nn.Module):
    """σ(x) and μ(x): a generator, and a map from its numbers to σ ≥ 0. ``PiNoise`` sets the attributes."""

    feature_scale: Tensor
    initial_scale: Tensor

    generator: nn.Module
    shape: tuple[int, ...]
    outputs: int  # of the generator: σ, and perhaps μ
    distribution: Distribution
    positive: ScaleMap
    normalize: float | None
    weight: float
    columns: Columns | None

    @property
    def live(self) -> Tensor:
        """Which features have noise."""
        return self.feature_scale > 0

    @property
    def numbers(self) -> Tensor:
        """Which live features are numbers, rather than one of several features of a column."""
        return self.live if self.columns is None else self.live & ~self.columns.several

    @property
    def shares_features(self) -> bool:
        """Whether the generator reads the encoder's features of x."""
        return isinstance(self.generator, SharedGenerator)

    def by_column(self, values: Tensor) -> Tensor:
        """Return σ, or what else the features of a column share, once for every column."""
        return values if self.columns is None else self.columns.largest(values)

    def scale(self, x: Tensor) -> Tensor:
        """σ(x) (or w(x) of the uniform distribution), in the units of x, shape (m, *shape)."""
        return self.feature_scale * self.relative_scale(x)

    def relative_scale(self, x: Tensor) -> Tensor:
        """σ(x) in units of each feature's training standard deviation, 0 for dead features.

        With ``normalize`` it is σ after rescaling, computed from the expected size of a draw.
        """
        return self.normalised(*self.parameters_of(x))[0].expand_as(x)

    def mean(self, x: Tensor) -> Tensor:
        """μ(x) in the units of x, shape (m, *shape). With ``normalize`` it is rescaled as in ``relative_scale``."""
        mean = self.normalised(*self.parameters_of(x))[1]
        return (self.feature_scale * mean).expand_as(x) if isinstance(mean, Tensor) else torch.zeros_like(x)

    def parameters_of(self, x: Tensor, features: Tensor | None = None) -> tuple[Tensor, Tensor | float]:
        """Return the relative σ and μ, per sample or one for all samples, from one pass through the generator."""
        if x.shape[1:] != self.shape:
            raise UserError(f"samples have shape {tuple(x.shape[1:])}: this noise was made for {self.shape}.")
        raw = self.generator(x, features) if features is not None and self.shares_features else self.generator(x)
        size = math.prod(self.shape) * self.outputs
        if raw.numel() not in (size, x.shape[0] * size):
            raise UserError(
                f"the generator returned shape {tuple(raw.shape)} for {x.shape[0]} samples: "
                f"it must return {(x.shape[0], self.outputs, *self.shape)}, or one entry for all samples."
            )
        raw = raw.reshape(-1, self.outputs, *self.shape)
        live, positive = self.live.to(x.dtype), SCALE_MAPS[self.positive]
        if self.columns is None:
            scale = positive(raw[:, 0], self.initial_scale, live).clamp_min(SMALLEST_SCALE)
        else:  # one σ for each column
            initial, alive = self.columns.largest(live * self.initial_scale), self.columns.largest(live)
            raw = self.columns.means(raw)
            scale = positive(raw[:, 0], torch.where(alive > 0, initial, 1), alive).clamp_min(SMALLEST_SCALE)
            scale, raw = self.columns.spread(scale), self.columns.spread(raw)
        return live * scale, self.numbers * raw[:, 1] if self.outputs == 2 else 0.0

    def spread_by(self, scale: Tensor, mean: Tensor | float, n: Tensor) -> Tensor:
        """Return ε in the units of x from the relative σ and μ and a base draw, without a move."""
        noise_of, unit = FAMILIES[self.distribution].noise, self.feature_scale
        if self.normalize is None:
            return noise_of(mean * unit if isinstance(mean, Tensor) else mean, scale * unit, n)
        return unit * self.normalize * unit_rms(noise_of(mean, scale, n) * self.numbers, self.numbers)

    def normalised(self, scale: Tensor, mean: Tensor | float) -> tuple[Tensor, Tensor | float]:
        """Return the relative σ and μ after ``normalize``."""
        if self.normalize is None:
            return scale, mean
        offset = self.by_column(mean.abs()) if isinstance(mean, Tensor) else mean
        live, variance = self.by_column(self.live.to(scale.dtype)), FAMILIES[self.distribution].variance
        factor = self.normalize / expected_rms(offset, self.by_column(scale), live, variance=variance)
        return scale * factor, mean * factor

    def param_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return ψ as parameter groups for an optimiser, with the learning rate that suits the generator.

        Args:
            lr: the encoder's learning rate.
        """
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rate = lr * GLOBAL_RATE if isinstance(self.generator, GlobalGenerator) else lr
        return [{"params": learning, "lr": rate}] if learning else []

    def regularizer(self, x: Tensor) -> Tensor:
        """λ · mean (log σ − log r)² with r the initial scale. Add it to the loss: it keeps noise in every feature."""
        scale, _ = self.parameters_of(x)
        return self.weight * mean_log_ratio_squared(self.by_column(scale), self.by_column(self.initial_scale))

    @torch.no_grad()
    def typical_scale(self, rows: Tensor) -> Tensor:
        """Return the geometric mean of σ over at most 256 of some rows, in the units of x, shape (*shape)."""
        size = min(_TYPICAL_ROWS, len(rows))  # evenly spaced, because rows may be sorted
        with evaluating(self.generator):
            scale, _ = self.parameters_of(rows[torch.arange(size, device=rows.device) * len(rows) // size])
        return self.feature_scale * scale.clamp_min(SMALLEST_SCALE).log().mean(dim=0).exp()

    def extra_repr(self) -> str:
        """Name the settings in the module's repr."""
        mean = "learned" if self.outputs == 2 else "zero"
        return f"{self.shape}, distribution={self.distribution}, mean={mean}, positive={self.positive}"


def check_shape(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return the shape of one sample. A number of features d is short for (d,).

    >>> check_shape(4), check_shape([3, 8, 8])
    ((4,), (3, 8, 8))
    """
    # SupportsIndex also covers numpy's integers.
    sizes = (index(shape),) if isinstance(shape, SupportsIndex) else tuple(index(size) for size in shape)
    if not sizes or any(size < 1 for size in sizes):
        raise UserError(f"shape is {shape}: every size of a sample must be at least 1.")
    return sizes


def check_scale(name: str, given: float | Tensor, shape: tuple[int, ...], *, least: float) -> Tensor:
    """Return one finite number for each feature, given as such or as one for all.

    Args:
        name: of the argument.
        given: ``feature_scale``, the standard deviations of features, 0 for dead ones; or ``initial_scale``, σ.
        shape: of a sample.
        least: the least number.

    >>> check_scale("initial_scale", 0.5, (2,), least=0.1)
    tensor([0.5000, 0.5000])
    """
    values = torch.as_tensor(given).detach().to(torch.get_default_dtype())
    if values.ndim and values.shape != shape:
        raise UserError(f"{name} has shape {tuple(values.shape)}: it must be a number, or have shape {shape}.")
    wrong = values[~torch.isfinite(values) | (values < least)]
    if wrong.numel():
        raise UserError(f"{name} is {float(wrong.flatten()[0])}: it must be a finite number of at least {least:g}.")
    return values.expand(shape).clone()
