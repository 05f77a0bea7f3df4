"""σ of p_ψ(ε|x): networks that turn x into raw numbers, maps from these to σ ≥ 0, and what keeps σ from vanishing.

A generator is any module from (m, *shape) to (m, outputs, *shape), or to the same numbers flattened in that order.
Output 0 becomes the scale. Output 1, if there is one, becomes the mean.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import GENERATOR, Size, check_call, find, name_of
from pinoise.errors import UserError
from pinoise.modes import without_trace
from pinoise.networks.mlp import HIDDEN, Linear
from pinoise.noise.image_generators import SharedMapGenerator

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


def prior_scale(spread: Tensor, feature_scale: Tensor) -> Tensor:
    """Return r in standard deviations of each feature, in a range that noise of fixed entropy can reach.

    r is kept within a factor e^±2 of its median over live features. Otherwise a feature in which all neighbours are
    equal, for example because of duplicates, would have log r = −∞. If neighbours hardly differ at all, r is raised to
    a median of 0.1, because equal views teach nothing. A dead feature, whose scale is 0, gets r = 1 and no noise.

    Args:
        spread: the spread of neighbours, shape (*shape).
        feature_scale: the standard deviation of each feature, shape (*shape).

    >>> prior_scale(torch.tensor([0.0, 1.0, 2.0, 9.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]))
    tensor([0.2707, 1.0000, 2.0000, 9.0000, 1.0000])
    """
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


def check_feature_scale(feature_scale: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Check the standard deviations of features, 0 for dead ones, and return a copy."""
    if feature_scale.shape != shape:
        raise UserError(f"feature_scale has shape {tuple(feature_scale.shape)}: it must be {shape}.")
    wrong = feature_scale[~torch.isfinite(feature_scale) | (feature_scale < 0)]
    if len(wrong):
        raise UserError(
            f"feature_scale has an entry {float(wrong[0])}: "
            "it holds standard deviations, which are finite and at least 0 (0 for a dead feature)."
        )
    return feature_scale.detach().to(torch.get_default_dtype()).clone()


def check_initial_scale(initial_scale: float | Tensor, shape: tuple[int, ...], *, least: float) -> Tensor:
    """Return the initial σ of every feature, given as one number per feature or one for all.

    >>> check_initial_scale(0.5, (2,), least=0.1)
    tensor([0.5000, 0.5000])
    """
    values = torch.as_tensor(initial_scale).detach().to(torch.get_default_dtype())
    if values.ndim and values.shape != shape:
        raise UserError(f"initial_scale has shape {tuple(values.shape)}: it must be a number, or have shape {shape}.")
    wrong = values[~torch.isfinite(values) | (values < least)]
    if wrong.numel():
        raise UserError(
            f"initial_scale is {float(wrong.flatten()[0])}: it must be a finite number of at least {least:g}."
        )
    return values.expand(shape).clone()


PAPERS_GENERATOR = "mlp"  # the paper's generator for vectors


class MLPGenerator(nn.Module):
    """The paper's DNN3: a trunk d→h→h, then for each output a head h→h→d.

    With a learned mean (two outputs) one sample costs 3dh + 3h² multiply-accumulates, as in the paper's cost table.

    >>> MLPGenerator((5,), outputs=2, hidden=8)(torch.zeros(3, 5)).shape
    torch.Size([3, 2, 5])
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, *, hidden: Size = HIDDEN) -> None:
        super().__init__()
        dim = math.prod(shape)
        self.shape = shape
        self.trunk = nn.Sequential(
            nn.Flatten(), Linear(dim, hidden), nn.ReLU(inplace=True), Linear(hidden, hidden), nn.ReLU(inplace=True)
        )
        self.heads = nn.ModuleList(
            nn.Sequential(Linear(hidden, hidden), nn.ReLU(inplace=True), Linear(hidden, dim)) for _ in range(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (m, outputs, *shape)."""
        h = self.trunk(x)  # (m, hidden)
        return torch.stack([head(h) for head in self.heads], dim=1).reshape(x.shape[0], -1, *self.shape)


class SharedGenerator(nn.Module):
    """A linear head on the encoder's features of x. The noise then costs almost nothing.

    The encoder runs without gradient: ψ is the head alone, and θ learns from the contrastive loss alone. The generator
    refers to the encoder but does not own it, so ``parameters()`` and ``state_dict()`` leave the encoder out.

    >>> encoder = nn.Linear(5, 4)
    >>> generator = SharedGenerator((5,), outputs=1, encoder=encoder, features=4)
    >>> generator(torch.zeros(3, 5)).shape, sum(p.numel() for p in generator.parameters())
    (torch.Size([3, 1, 5]), 25)
    """

    def __init__(self, shape: tuple[int, ...], outputs: int, encoder: nn.Module, features: int) -> None:
        super().__init__()
        self.shape = shape
        self.outputs = outputs
        self._encoder = (encoder,)  # a tuple hides it from nn.Module's registration
        self.head = Linear(features, outputs * math.prod(shape))

    def forward(self, x: Tensor, features: Tensor | None = None) -> Tensor:
        """Return raw parameters (m, outputs, *shape). Known ``features`` (m, dim) save a pass through the encoder."""
        if features is None:
            with without_trace(self._encoder[0], x):
                features = self._encoder[0](x)
        raw: Tensor = self.head(features.detach())
        return raw.reshape(x.shape[0], self.outputs, *self.shape)


class GlobalGenerator(nn.Module):
    """One number per feature and output, the same for every sample. Its cost is negligible.

    >>> GlobalGenerator((5,), outputs=2)(torch.zeros(3, 5)).shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(1, outputs, *shape))

    def forward(self, x: Tensor) -> Tensor:
        """Return raw parameters (1, outputs, *shape)."""
        return self.raw


class ConstantGenerator(nn.Module):
    """No parameters: σ keeps its initial value and μ is 0 (the Random Noise baseline)."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.shape = shape
        self.outputs = outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (1, outputs, *shape): the same for every sample."""
        return x.new_zeros(1, self.outputs, *self.shape)


def shared_generator(shape: tuple[int, ...], outputs: int, encoder: nn.Module | None) -> nn.Module:
    """Return a light head on the encoder: for images on its feature maps, if it has ``maps``, else on its features.

    >>> type(shared_generator((5,), 1, nn.Linear(5, 4))).__name__
    'SharedGenerator'
    """
    if encoder is not None and len(shape) == 3 and hasattr(encoder, "maps"):
        return SharedMapGenerator(shape, outputs, encoder)
    features = getattr(encoder, "out_features", None)
    if encoder is None or not isinstance(features, int):
        found = "none" if encoder is None else f"{type(encoder).__name__}, whose out_features is {features!r}"
        raise UserError(
            f"generator 'shared' reads the features of an encoder and was given {found}: "
            "pass encoder=, a module that states its output size as the integer attribute out_features."
        )
    return SharedGenerator(shape, outputs, encoder, features)


def make_generator(
    generator: Any,
    shape: tuple[int, ...],
    outputs: int,
    *,
    encoder: nn.Module | None = None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Return a generator for samples of a shape.

    Args:
        generator: a name, an import path, a module, or a class or function that makes one from ``shape`` and
            ``outputs``.
        shape: the shape of one sample.
        outputs: 1 (scale), or 2 (scale, mean).
        encoder: the encoder, for a generator that reads its features.
        options: the generator's options.

    >>> make_generator("unet", (1, 7, 5), 2, options={"width": 4})(torch.zeros(3, 1, 7, 5)).shape
    torch.Size([3, 2, 1, 7, 5])
    """
    part = find(GENERATOR, generator) if isinstance(generator, str) else generator
    if isinstance(part, nn.Module):
        return part
    if part is None:
        raise UserError(f"generator {generator!r} leaves the choice to an objective: name one here.")
    if not callable(part):
        raise UserError(f"generator {generator!r} is of type {type(part).__name__}: give {GENERATOR.own}.")
    site = {"encoder": encoder} if "encoder" in inspect.signature(part).parameters else {}
    given = {**(options or {}), **site}
    name = generator if isinstance(generator, str) else name_of(generator)
    check_call(GENERATOR, name, part, 2, given)
    made = part(shape, outputs, **given)
    if not isinstance(made, nn.Module):
        raise UserError(f"generator {name!r} made {type(made).__name__}: it must make a torch module.")
    return made
