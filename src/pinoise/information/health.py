"""Signs that training went wrong, each with a name, what it means and what to change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pinoise.errors import UserError

SHRINK_BELOW = 0.05
PARKING_BELOW = 0.2
CLEAN_BELOW = 0.02
# Different samples at a mean cosine of .9975. Trained networks, and untrained ones, whose embeddings have a large
# common part, are above .25; .9 and more is usual.
SPREAD_BELOW = 0.05
# A line has 1, two even directions have 2. Embeddings of a single feature, bent by the encoder, are near 2 already.
RANK_BELOW = 1.5
LOSS_FLOOR_WITHIN = 0.01
LOSS_ZERO_BELOW = 1e-3
_ROUNDING = 1e-6  # singular values below this share of the largest possible one are rounding


class NoiseMetrics(NamedTuple):
    """The size of learned noise, in each feature's standard deviations, and how live features share it.

    Attributes:
        sigma_mean: mean σ over samples and features.
        sigma_median: median σ over samples and features.
        participation: (Σσ)² / (d Σσ²) of the features' mean σ: 1 when even, 1/d when on one feature, 0 without noise.
        cleanest: the smallest of the features' mean σ over their median, 0 without noise.
    """

    sigma_mean: float
    sigma_median: float
    participation: float
    cleanest: float


class EmbeddingMetrics(NamedTuple):
    """How embeddings on the unit sphere fill it.

    Attributes:
        effective_rank: exp of the entropy of their centred matrix's singular values, taken as shares: 1 along a line.
            Centring keeps a common part, which ReLU gives any embedding, from hiding the rest.
        possible_rank: what the effective rank can be at most, given the numbers of samples and dimensions.
        spread: √o times the mean standard deviation of a dimension: 1 when isotropic, 0 when all are equal.
    """

    effective_rank: float
    possible_rank: int
    spread: float


class HealthFlag(NamedTuple):
    """A named sign of trouble."""

    name: str
    meaning: str


def measure_noise(relative_scale: Tensor, live: Tensor) -> NoiseMetrics:
    """Measure σ (m, *shape) over the live features (*shape); it waits for the device once.

    >>> measure_noise(torch.tensor([[2.0, 0.0, 2.0]]), torch.tensor([True, False, True]))
    NoiseMetrics(sigma_mean=2.0, sigma_median=2.0, participation=1.0, cleanest=1.0)
    """
    sigma = relative_scale.detach().flatten(1).float()  # (m, d)
    alive = live.flatten()
    if alive.shape != sigma.shape[1:]:
        raise UserError(f"σ has {sigma.shape[1]} features and the mask of live ones {len(alive)}: they must agree.")
    feature = sigma.mean(0).where(alive, 0)  # (d,)
    count = alive.sum()
    tiny = torch.finfo(feature.dtype).tiny
    share = feature / feature.amax().clamp(min=tiny)  # its square neither overflows nor vanishes
    smallest = feature.where(alive, math.inf).amin()
    numbers = torch.stack(
        [
            feature.sum() / count,
            sigma.where(alive, math.nan).nanmedian(),
            share.sum() ** 2 / (count * share.square().sum()).clamp(min=tiny),
            smallest / feature.where(alive, math.nan).nanmedian().clamp(min=tiny),
            count,
        ]
    ).tolist()
    if not numbers.pop():
        raise UserError("no feature varies, so there is no noise to measure: look at the data.")
    return NoiseMetrics(*numbers)


def measure_embedding(z: Tensor) -> EmbeddingMetrics:
    """Measure the embeddings (m, o) of m different samples; numbers that are not finite give nan.

    >>> metrics = measure_embedding(torch.tensor([[3.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -2.0]]))  # a cross
    >>> round(metrics.effective_rank, 4), metrics.possible_rank, round(metrics.spread, 4)
    (2.0, 2, 1.0)
    """
    if z.ndim != 2 or len(z) < 2 or not z.shape[1]:
        raise UserError(f"embeddings have the shape {tuple(z.shape)}: give those of at least 2 samples, one per row.")
    z = z.detach().float()
    m, o = z.shape
    finite = z.isfinite().all()
    unit = F.normalize(z.where(finite, 0), dim=1)
    centred = unit - unit.mean(0)
    singular = torch.linalg.svdvals(centred) / m**0.5
    singular = singular.where(singular > _ROUNDING, 0)
    share = singular / singular.sum().clamp(min=_ROUNDING)
    spread = o**0.5 * centred.square().mean(0).sqrt().mean()
    rank = torch.special.entr(share).sum().exp()
    effective_rank, spread_ = torch.stack([rank, spread]).where(finite, math.nan).tolist()
    return EmbeddingMetrics(effective_rank, min(m - 1, o), spread_)


def check_health(
    *,
    noise: NoiseMetrics | None,
    embedding: EmbeddingMetrics,
    loss: float,
    loss_floor: float | None,
    least_loss: float = 0.0,
) -> list[HealthFlag]:
    """Return the flags that training raises.

    Args:
        noise: measures of learned noise; None if noise is not learned.
        embedding: measures of different samples without noise.
        loss: the mean contrastive loss.
        loss_floor: the loss of guessing, such as log(2m − 1) of NT-Xent for batches of m; None for a loss without one.
        least_loss: the loss when every pair matches: 0, or −1 for a negative cosine.

    >>> embedding = EmbeddingMetrics(effective_rank=20.0, possible_rank=99, spread=0.9)
    >>> check_health(noise=NoiseMetrics(1.0, 1.0, 0.9, 0.5), embedding=embedding, loss=0.4, loss_floor=5.3)
    []
    >>> noise = NoiseMetrics(sigma_mean=0.2, sigma_median=0.01, participation=0.5, cleanest=0.0)
    >>> [flag.name for flag in check_health(noise=noise, embedding=embedding, loss=0.4, loss_floor=5.3)]
    ['shrink']
    """
    numbers = {"loss": loss, **embedding._asdict(), **(noise._asdict() if noise else {})}
    broken = [f"{name.replace('_', ' ')} is {value}" for name, value in numbers.items() if not math.isfinite(value)]
    if broken:  # it is the cause of everything else that could be measured
        advice = "training diverged; lower the learning rate, train in 32 bits, or look for extreme values in the data"
        return [HealthFlag("non-finite", f"{', '.join(broken)}: {advice}")]
    of_noise = () if noise is None else _flags_of_noise(noise)
    return [*of_noise, *_flags_of_embedding(embedding), *_flags_of_loss(loss, loss_floor, least_loss)]


def _flags_of_noise(noise: NoiseMetrics) -> Iterator[HealthFlag]:
    if shrinks := noise.sigma_median < SHRINK_BELOW:
        meaning = (
            f"the learned noise collapsed: its median σ is {noise.sigma_median:.2g} standard deviations, so that the "
            "two views hardly differ; use objective 'supported', whose noise keeps its entropy, or 'fixed', or give "
            "objective 'paper' a penalty"
        )
        yield HealthFlag("shrink", meaning)
    if noise.sigma_mean > 0 and noise.participation < PARKING_BELOW:
        meaning = (
            f"the noise is parked on few features: its participation is {noise.participation:.2g}, where 1 is even, so "
            "that most features are not augmented; use objective 'supported', whose prior is the data's own "
            "variation, or 'fixed', or lower the penalty of objective 'paper'"
        )
        yield HealthFlag("parking", meaning)
    if not shrinks and noise.cleanest < CLEAN_BELOW:
        meaning = (
            f"some feature is nearly clean: it has {noise.cleanest:.2g} of the median feature's σ, and the views can "
            "be matched by it alone; use objective 'supported', whose prior gives every feature noise, or 'fixed'"
        )
        yield HealthFlag("clean-channel", meaning)


def _flags_of_embedding(embedding: EmbeddingMetrics) -> Iterator[HealthFlag]:
    rank, possible, spread = embedding
    # Few samples span few directions: 2 samples are always on a line.
    if spread >= SPREAD_BELOW and rank >= min(RANK_BELOW, RANK_BELOW * possible / 2):
        return
    looks = "are nearly equal" if spread < SPREAD_BELOW else "lie along one line"
    meaning = (
        f"the embeddings of different samples {looks}: their spread is {spread:.2g}, where 1 is even, and their "
        f"effective rank {rank:.2g} of {possible}; lower the learning rate or the noise's scale, or use larger batches"
    )
    yield HealthFlag("embedding-collapse", meaning)


def _flags_of_loss(loss: float, floor: float | None, least: float) -> Iterator[HealthFlag]:
    if floor is not None and loss >= (1 - LOSS_FLOOR_WITHIN) * floor:
        meaning = (
            f"the loss is {loss:.3g}, and guessing has {floor:.3g}: samples are not distinguished; use weaker noise, a "
            "lower learning rate, or more epochs; objective 'adversarial' often causes this"
        )
        yield HealthFlag("loss-floor", meaning)
    elif abs(loss - least) < LOSS_ZERO_BELOW:
        meaning = (
            f"the loss is {loss:.2g}: the views are matched without effort and nothing is left to learn; use a larger "
            "noise scale, objective 'adversarial', a higher temperature or larger batches"
        )
        yield HealthFlag("loss-zero", meaning)
