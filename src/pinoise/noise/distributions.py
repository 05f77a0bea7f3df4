"""The families of p_ψ(ε|x), each written as μ + s ⊙ n so that gradients reach ψ, and noise of a given norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def gaussian(mean: Tensor | float, scale: Tensor, draw: Tensor) -> Tensor:
    """ε = μ + σ ⊙ n with n ~ N(0, I) (Eq. 19).

    The paper writes Σ for this factor; it is used as a standard deviation.

    >>> gaussian(1.0, torch.tensor([2.0]), torch.tensor([-0.5]))
    tensor([0.])
    """
    noise = scale * draw
    return noise if isinstance(mean, float) and mean == 0 else mean + noise  # adding 0 would cost a pass over the batch


def uniform(mean: Tensor | float, scale: Tensor, draw: Tensor) -> Tensor:
    """ε = μ + (2u − 1) ⊙ w with u ~ U(0, 1): uniform on (μ − w, μ + w).

    >>> uniform(0.0, torch.tensor([3.0]), torch.tensor([1.0]))
    tensor([3.])
    """
    return mean + (2 * draw - 1) * scale


REPARAMETERISATIONS: dict[str, Callable[[Tensor | float, Tensor, Tensor], Tensor]] = {
    "gaussian": gaussian,
    "uniform": uniform,
}

BASE_DRAWS: dict[str, Callable[..., Tensor]] = {"gaussian": torch.randn_like, "uniform": torch.rand_like}

# The variance of ε for s = 1.
BASE_VARIANCES: dict[str, float] = {"gaussian": 1.0, "uniform": 1 / 3}


def unit_rms(noise: Tensor, live: Tensor) -> Tensor:
    """Rescale every sample's noise to root mean square 1 over its live features.

    Args:
        noise: ε, shape (..., *shape), 0 in dead features.
        live: which features are live, shape (*shape).

    >>> unit_rms(torch.tensor([[3.0, 0.0, 3.0]]), torch.tensor([True, False, True]))
    tensor([[1., 0., 1.]])
    """
    norm = torch.linalg.vector_norm(noise, dim=_features(live), keepdim=True)
    unit: Tensor = noise * live.sum().sqrt() / norm.clamp_min(_least(noise))
    return unit


def expected_rms(mean: Tensor | float, scale: Tensor, live: Tensor, *, variance: float) -> Tensor:
    """√ of the mean over live features of E ε² = μ² + v s², for every sample, shape (m, 1, …).

    Args:
        mean: μ, shape (m, *shape) or a number, 0 in dead features.
        scale: s, shape (m, *shape), 0 in dead features.
        live: which features are live, shape (*shape).
        variance: v, the variance of ε for s = 1.

    >>> expected_rms(torch.tensor([[0.0, 4.0]]), torch.tensor([[3.0, 3.0]]), torch.ones(2, dtype=bool), variance=1.0)
    tensor([[4.1231]])
    """
    squares = (mean**2 + variance * scale.square()).sum(dim=_features(live), keepdim=True)
    return (squares / live.sum().clamp_min(1)).sqrt().clamp_min(_least(scale))


def _features(live: Tensor) -> tuple[int, ...]:
    return tuple(range(-live.ndim, 0))


def _least(noise: Tensor) -> float:
    """Return the smallest norm to divide by. Squares of smaller numbers underflow, and the noise would explode."""
    return float(torch.finfo(noise.dtype).tiny ** 0.5)
