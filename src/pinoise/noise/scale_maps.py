"""Maps from the real line to σ ≥ 0, each with its inverse so that an initial scale can be asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Positive = Literal["softplus", "abs"]


class PositiveMap(NamedTuple):
    """A map onto σ ≥ 0 and its inverse at one positive number."""

    forward: Callable[[Tensor], Tensor]
    inverse: Callable[[float], float]


def inverse_softplus(value: float) -> float:
    """The number whose softplus is ``value``.

    >>> round(float(F.softplus(torch.tensor(inverse_softplus(0.3)))), 6)
    0.3
    """
    return value + math.log(-math.expm1(-value))


POSITIVE_MAPS: dict[str, PositiveMap] = {
    "softplus": PositiveMap(F.softplus, inverse_softplus),
    "abs": PositiveMap(torch.abs, float),
}
