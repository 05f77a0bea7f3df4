"""The families of p_ψ(ε|x), each written as μ + s ⊙ n so that gradients reach ψ (reparameterisation)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Distribution = Literal["gaussian", "uniform"]


def gaussian(mean: Tensor | float, scale: Tensor, draw: Tensor) -> Tensor:
    """ε = μ + σ ⊙ n with n ~ N(0, I) (Eq. 19).

    The paper writes Σ for this factor; it is used as a standard deviation.

    >>> gaussian(1.0, torch.tensor([2.0]), torch.tensor([-0.5]))
    tensor([0.])
    """
    noise = scale * draw
    return noise if isinstance(mean, float) and mean == 0 else mean + noise  # adding nothing is a pass over the batch


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

BASE_DRAWS: dict[str, Callable[[Tensor], Tensor]] = {"gaussian": torch.randn_like, "uniform": torch.rand_like}

BASE_VARIANCES: dict[str, float] = {"gaussian": 1.0, "uniform": 1 / 3}
"""The variance of ε where s is 1."""
