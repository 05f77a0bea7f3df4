"""Entropies of the task and its mutual information with the noise, I(T; E), for every sample and averaged over samples.

The task is α ~ N(0, 1/γ) with γ = exp(−ℓ). Positive noise (π-noise) has
mutual information with it, pure noise has none. Averages have standard errors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pinoise.errors import UserError

POINTS = 128  # the default size of the quadrature's grid

_STANDARD_ENTROPY = math.log(2 * math.pi * math.e) / 2  # of N(0, 1), in nats
_FEWEST_POINTS = 16
_FINE_STEP = 0.2  # of the substituted variable; there the error is below 1e-6
_TAIL = math.log(16)  # the grid ends at 8 standard deviations of the widest component, as sinh(t) ≈ exp(t) / 2
_WIDEST_GAP = 40.0  # components this far apart in ℓ overlap by exp(−20): a wider gap changes nothing
_MAX_ELEMENTS = 2**21  # of the largest intermediate, 16 MB in double precision


def gaussian_entropy(loss: Tensor) -> Tensor:
    """h of N(0, 1/γ) with γ = exp(−ℓ): ½ log 2πe + ½ ℓ, element by element.

    >>> gaussian_entropy(torch.tensor([0.0, 2.0]))
    tensor([1.4189, 2.4189])
    """
    return _STANDARD_ENTROPY + loss / 2


def conditional_entropy(losses: Tensor) -> Tensor:
    """H(T|E) of every sample: the mean of h over the K draws of ε, shape (n, K) to (n,).

    >>> conditional_entropy(torch.tensor([[0.0, 4.0]]))
    tensor([2.4189])
    """
    check_losses(losses)
    return gaussian_entropy(losses.mean(1))


def plug_in_information(clean: Tensor, losses: Tensor) -> Tensor:
    """H(T) − H(T|E) of every sample, ½ (ℓ(x) − mean_k ℓ(x, ε_k)): negative where the noise makes the task harder.

    Args:
        clean: ℓ(x) without noise, shape (n,).
        losses: ℓ(x, ε_k) under K draws, shape (n, K).

    >>> plug_in_information(torch.tensor([3.0, 3.0]), torch.tensor([[0.0, 2.0], [4.0, 6.0]]))
    tensor([ 1., -1.])
    """
    check_losses(losses)
    if clean.shape != losses.shape[:1]:
        raise UserError(
            f"the losses without noise have the shape {tuple(clean.shape)} and those with noise {tuple(losses.shape)}: "
            "give one without noise for every row."
        )
    return (clean - losses.mean(1)) / 2


def mutual_information(losses: Tensor, *, points: int = POINTS) -> Tensor:
    """Exact I(T; E | x): entropy of p(α|x) = mean_k N(0, 1/γ(x, ε_k)) less the mean entropy of its components.

    It lies between 0, when the losses of a row are equal, and log K, when they are far apart, and is differentiable.
    Rows that are not finite give nan rather than an error, so that a training step need not wait for the device.

    It is computed as the mean over k of KL(N(0, exp ℓ_k) ‖ p). One integral of that keeps small values exact, where the
    difference of two integrals would drown them: on every grid the sum has no negative term, and it is 0 to rounding
    when all losses are equal. With α = s sinh(t), s the smallest component's standard deviation, the integrand is
    smooth and even in t and falls off doubly exponentially, so the trapezoid rule converges geometrically. When the
    losses of a row lie within 30 of each other, the error is below 1e-5 with 64 points and below 1e-7 with 128; within
    100 it is below 1e-3 with 128. ``sufficient_points`` serves wider rows.

    Args:
        losses: ℓ of n samples under K draws of ε, shape (n, K).
        points: the size of the grid.

    Returns:
        Shape (n,).

    >>> mutual_information(torch.tensor([[0.0, 2.0], [0.0, 80.0]]))  # the second is log 2
    tensor([0.1632, 0.6931])
    """
    check_losses(losses)
    if points < _FEWEST_POINTS:
        raise UserError(f"points is {points}: the quadrature needs at least {_FEWEST_POINTS}.")
    rows = max(1, _MAX_ELEMENTS // (losses.shape[1] * points))
    return torch.cat([_divergence(chunk, points) for chunk in losses.split(rows)])


def sufficient_points(losses: Tensor) -> int:
    """Return the number of points that keeps the error below 1e-6 for all rows (n, K); it waits for the device.

    >>> sufficient_points(torch.tensor([[0.0, 1.0]])), sufficient_points(torch.tensor([[0.0, 40.0, 80.0, 120.0]]))
    (128, 315)
    """
    check_losses(losses)
    widest = float(_relative_log_scales(losses.detach())[:, -1].max()) if len(losses) else 0.0
    return max(POINTS, math.ceil((widest + _TAIL) / _FINE_STEP) + 1)


def check_losses(losses: Tensor) -> None:
    """Refuse losses that are not floating-point numbers of shape (n, K) with K ≥ 1."""
    if losses.ndim != 2 or losses.shape[1] < 1:
        raise UserError(
            f"losses have the shape {tuple(losses.shape)}: give a row for every sample and a column for every draw."
        )
    if not losses.is_floating_point():
        raise UserError(f"losses are of type {losses.dtype}: give floating-point numbers.")


def _divergence(losses: Tensor, points: int) -> Tensor:
    log_scale = _relative_log_scales(losses)  # (n, K)
    end = log_scale[:, -1:].detach() + _TAIL  # (n, 1)
    t = end * torch.linspace(0, 1, points, dtype=end.dtype, device=end.device)  # (n, points)
    measure = t.cosh().log() + math.log(2 / math.pi) / 2  # dα/dt, and twice the density as only α ≥ 0 is visited
    log_density = (  # (n, K, points)
        measure[:, None]
        - log_scale[:, :, None]
        - t.sinh().square()[:, None] * (torch.exp(-2 * log_scale) / 2)[:, :, None]
    )
    density = log_density.exp()
    log_mixture = density.mean(1).log()  # (n, points)
    integrand = (density * (log_density - log_mixture[:, None])).mean(1)
    step = end[:, 0] / (points - 1)
    divergence = step * (integrand.sum(1) - integrand[:, 0] / 2)  # the far end is 0
    return divergence.where(losses.isfinite().all(1), math.nan).to(losses.dtype)


def _relative_log_scales(losses: Tensor) -> Tensor:
    """Return log s_k of every row (n, K) in rising order from 0, with gaps that are too wide to matter closed."""
    ordered = losses.to(_working_type(losses.device)).sort(dim=1).values
    gaps = ordered.diff(dim=1).clamp(max=_WIDEST_GAP)
    log_scale = torch.cat([torch.zeros_like(ordered[:, :1]), gaps.cumsum(1)], dim=1) / 2
    return log_scale.clamp(max=math.log(torch.finfo(log_scale.dtype).max) / 2 - 4)  # sinh² must not overflow


def _working_type(device: torch.device) -> torch.dtype:
    """Return double precision, or single where the device has no other."""
    return torch.float32 if device.type == "mps" else torch.float64


class Estimate(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float


class InformationEstimate(NamedTuple):
    """What noise tells about the task, in nats; ``measure_information`` says how each figure is estimated."""

    task_entropy: Estimate
    conditional_entropy: Estimate
    exact: Estimate
    plug_in: Estimate
    draws: int
    samples: int

    def as_dict(self) -> dict[str, dict[str, float] | int]:
        """Return plain dictionaries and numbers, for JSON."""
        fields = self._asdict().items()
        return {name: value._asdict() if isinstance(value, Estimate) else value for name, value in fields}


def average(values: Tensor, left_out: Tensor | None = None) -> Estimate:
    """Mean over samples, with a standard error for having seen few samples and few draws.

    The spread over samples, divided by √n, covers draws that are independent from sample to sample. But all samples of
    a batch are contrasted with one another, so the losses of one draw vary together, and the jackknife's variance over
    whole draws is added. What both see counts twice: the error is too large rather than too small.

    Args:
        values: the statistic of every sample, shape (n,).
        left_out: the same without each of the K draws, shape (n, K); None if the statistic uses no draws.

    >>> average(torch.tensor([1.0, 2.0, 3.0, 2.0]))
    Estimate(value=2.0, error=0.408248290463863)
    """
    n = len(values)
    if n < 2:
        raise UserError(f"there are losses of {n} sample(s): a standard error needs at least 2.")
    values = values.double()
    variance = float(values.var()) / n
    if left_out is not None:
        draws = left_out.shape[1]
        variance += (draws - 1) * float(left_out.double().mean(0).var(correction=0))
    return Estimate(float(values.mean()), math.sqrt(variance))


def estimate_mutual_information(losses: Tensor) -> Estimate:
    """Average the exact mutual information over samples, corrected for the number of draws.

    A mixture of K components stands for the whole distribution of ε. Its information is too small by a term in 1/K:
    one draw shows none at all. The jackknife removes that term, so that figures from different K can be compared. The
    corrected value is never below the uncorrected one, as the entropy is concave. The remaining bias, in 1/K², is not
    part of the error: take 8 draws or more where losses vary by 10 and more. With K = 2 a left-out draw leaves nothing
    to compare, and the error covers the samples alone.

    Args:
        losses: ℓ of n ≥ 2 samples under K ≥ 2 draws of ε, shape (n, K).

    >>> estimate = estimate_mutual_information(torch.tensor([[0.0, 2.0], [1.0, 4.0]]))
    >>> round(estimate.value, 4), round(estimate.error, 4)
    (0.4422, 0.1158)
    """
    losses = _measured(losses)
    draws, points = losses.shape[1], sufficient_points(losses)
    seen = mutual_information(losses, points=points)  # (n,)
    left_out = [mutual_information(_without(losses, draw), points=points) for draw in range(draws)]
    fewer = torch.stack(left_out, dim=1)  # (n, K)
    corrected = seen + (draws - 1) * (seen - fewer.mean(1))
    return average(corrected.clamp(min=0), fewer)  # below 0 by rounding only


def measure_information(clean: Tensor, losses: Tensor) -> InformationEstimate:
    """Return the entropies and both kinds of mutual information of a task and its noise, averaged over samples.

    The entropies and the plug-in information are means, without bias for any K. The exact information is corrected as
    ``estimate_mutual_information`` says. Errors are those of ``average``.

    Args:
        clean: ℓ(x) of n ≥ 2 samples without noise, shape (n,).
        losses: ℓ(x, ε_k) under K ≥ 2 draws of ε, shape (n, K).

    >>> losses = torch.tensor([[0.0, 2.0], [1.0, 3.0]])
    >>> information = measure_information(torch.tensor([2.0, 2.0]), losses)
    >>> round(information.plug_in.value, 4), round(information.exact.value, 4)
    (0.25, 0.3264)
    """
    losses = _measured(losses)
    clean = clean.detach().to("cpu", torch.float64)
    plug_in = plug_in_information(clean, losses)
    if not bool(clean.isfinite().all()):
        raise UserError("the losses without noise are not all finite numbers: look for the cause in training.")
    means = torch.stack([_without(losses, draw).mean(1) for draw in range(losses.shape[1])], dim=1)  # (n, K)
    return InformationEstimate(
        task_entropy=average(gaussian_entropy(clean)),
        conditional_entropy=average(conditional_entropy(losses), gaussian_entropy(means)),
        exact=estimate_mutual_information(losses),
        plug_in=average(plug_in, (clean[:, None] - means) / 2),
        draws=losses.shape[1],
        samples=len(losses),
    )


def _measured(losses: Tensor) -> Tensor:
    """Return losses in double precision, checked for everything that an estimate needs."""
    check_losses(losses)
    if losses.shape[1] < 2:
        raise UserError("there is 1 draw of the noise: mutual information needs at least 2.")
    losses = losses.detach().to("cpu", torch.float64)
    finite = losses.isfinite()
    if not bool(finite.all()):
        row, draw = (~finite).nonzero()[0].tolist()
        raise UserError(f"the loss of sample {row} under draw {draw} is {losses[row, draw]}: losses must be finite.")
    return losses


def _without(losses: Tensor, draw: int) -> Tensor:
    return torch.cat([losses[:, :draw], losses[:, draw + 1 :]], dim=1)
