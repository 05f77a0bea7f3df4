"""Signs that training went wrong, each with a name, what it means and what to change."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

SHRINK_BELOW = 0.05


class NoiseSummary(NamedTuple):
    """The size of learned noise, in units of each feature's standard deviation, over live features."""

    sigma_mean: float
    sigma_median: float


class HealthFlag(NamedTuple):
    """A named sign of trouble."""

    name: str
    meaning: str


def summarise_noise(relative_scale: Tensor, live: Tensor) -> NoiseSummary:
    """Summarise σ (m, *shape) over the live features (*shape).

    >>> import torch
    >>> summarise_noise(torch.tensor([[1.0, 0.0, 3.0]]), torch.tensor([True, False, True]))
    NoiseSummary(sigma_mean=2.0, sigma_median=1.0)
    """
    sigma = relative_scale[:, live]
    return NoiseSummary(float(sigma.mean()), float(sigma.median()))


def check_noise(summary: NoiseSummary) -> list[HealthFlag]:
    """Return the flags that the noise raises.

    >>> [flag.name for flag in check_noise(NoiseSummary(0.2, 0.01))]
    ['shrink']
    """
    if summary.sigma_median < SHRINK_BELOW:
        return [
            HealthFlag(
                "shrink",
                f"the learned noise collapsed: its median σ is {summary.sigma_median:.2g} standard deviations; where "
                "nothing else makes the two views differ, comparing them teaches little; use objective 'fixed', or "
                "give objective 'paper' a penalty",
            )
        ]
    return []
