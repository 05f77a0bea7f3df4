"""Averages over samples of what noise tells about the task, with standard errors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.information.equations import (
    check_losses,
    conditional_entropy,
    gaussian_entropy,
    mutual_information,
    plug_in_information,
    sufficient_points,
)


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
