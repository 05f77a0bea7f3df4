"""A slow cosine and NT-Xent in plain Python, and small networks, against which the methods are measured."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.networks import MLPEncoder, ProjectionHead

SlowCosine = Callable[[np.ndarray, np.ndarray], float]
SlowLoss = Callable[[np.ndarray, np.ndarray, float], list[float]]
Network = Callable[[np.ndarray], np.ndarray]


def _cosine(u: np.ndarray, v: np.ndarray) -> float:
    dot, uu, vv = (sum(float(a) * float(b) for a, b in zip(p, q, strict=True)) for p, q in ((u, v), (u, u), (v, v)))
    return dot / math.sqrt(uu * vv)


def _slow_nt_xent(first: np.ndarray, second: np.ndarray, temperature: float) -> list[float]:
    m = len(first)
    views = [*first, *second]
    losses = []
    for i in range(m):
        directions = []
        for anchor, partner in ((i, m + i), (m + i, i)):
            terms = {
                other: math.exp(_cosine(views[anchor], views[other]) / temperature)
                for other in range(2 * m)
                if other != anchor
            }
            directions.append(-math.log(terms[partner] / sum(terms.values())))
        losses.append(sum(directions) / 2)
    return losses


@pytest.fixture
def slow_cosine() -> SlowCosine:
    """The cosine of two vectors, one entry at a time, in float64."""
    return _cosine


@pytest.fixture
def slow_nt_xent() -> SlowLoss:
    """ℓ of every sample, one pair of views at a time, in float64."""
    return _slow_nt_xent


@pytest.fixture
def encoder() -> nn.Module:
    torch.manual_seed(0)
    return MLPEncoder((4,), hidden=16, out_features=5).double()


@pytest.fixture
def head() -> nn.Module:
    torch.manual_seed(1)
    return ProjectionHead(5, hidden=16, out_features=3).double()


@pytest.fixture
def predictor() -> nn.Module:
    torch.manual_seed(2)
    return ProjectionHead(3, hidden=16, out_features=3).double()


@pytest.fixture
def slow_network() -> Callable[[nn.Module], Network]:
    """Turn a network of fully connected layers with ReLU between them into plain Python."""

    def convert(module: nn.Module) -> Network:
        layers = [(m.weight.tolist(), m.bias.tolist()) for m in module.modules() if isinstance(m, nn.Linear)]

        def run(x: np.ndarray) -> np.ndarray:
            rows = []
            for sample in x:
                h = [float(value) for value in sample]
                for number, (weight, bias) in enumerate(layers):
                    h = [
                        sum(w * v for w, v in zip(row, h, strict=True)) + b for row, b in zip(weight, bias, strict=True)
                    ]
                    if number < len(layers) - 1:
                        h = [max(value, 0.0) for value in h]
                rows.append(h)
            return np.array(rows)

        return run

    return convert


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    """Two views of six samples of four features."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    return x, x + 0.3 * torch.randn(6, 4, generator=generator, dtype=torch.float64)
