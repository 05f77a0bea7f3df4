"""Maps from a generator's raw output to σ ≥ 0. An output of 0 gives the initial σ."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

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
