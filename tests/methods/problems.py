"""What the tests of several methods share: slow equations in plain Python, and views as batches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from pinoise.views import Batch

Pair = tuple[Tensor, Tensor]


def batches(*views: Tensor, rows: Tensor | None = None) -> list[Batch]:
    """Views as a method takes them, by default of the first rows."""
    return [Batch(x, torch.arange(len(x)) if rows is None else rows) for x in views]


def slow_cosine(u: np.ndarray, v: np.ndarray) -> float:
    """The cosine of two vectors, one entry at a time, in float64."""
    dot, uu, vv = (sum(float(a) * float(b) for a, b in zip(p, q, strict=True)) for p, q in ((u, v), (u, u), (v, v)))
    return dot / math.sqrt(uu * vv)


def slow_nt_xent(first: np.ndarray, second: np.ndarray, temperature: float) -> list[float]:
    """ℓ of every sample, one pair of views at a time, in float64."""
    m = len(first)
    views = [*first, *second]
    losses = []
    for i in range(m):
        directions = []
        for anchor, partner in ((i, m + i), (m + i, i)):
            terms = {
                other: math.exp(slow_cosine(views[anchor], views[other]) / temperature)
                for other in range(2 * m)
                if other != anchor
            }
            directions.append(-math.log(terms[partner] / sum(terms.values())))
        losses.append(sum(directions) / 2)
    return losses


def slow_info_nce(anchor: np.ndarray, positive: np.ndarray, negatives: np.ndarray, temperature: float) -> float:
    """ℓ of one sample, one negative at a time."""
    near = math.exp(slow_cosine(anchor, positive) / temperature)
    return -math.log(near / (near + sum(math.exp(slow_cosine(anchor, other) / temperature) for other in negatives)))


def slow_network(network: nn.Module) -> Callable[[np.ndarray], np.ndarray]:
    """Fully connected layers with ReLU between them, one sample and one unit at a time."""
    layers = [(m.weight.tolist(), m.bias.tolist()) for m in network.modules() if isinstance(m, nn.Linear)]

    def run(x: np.ndarray) -> np.ndarray:
        rows = []
        for sample in x:
            h = [float(value) for value in sample.ravel()]
            for number, (weight, bias) in enumerate(layers):
                h = [sum(w * v for w, v in zip(row, h, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
                if number < len(layers) - 1:
                    h = [max(value, 0.0) for value in h]
            rows.append(h)
        return np.array(rows)

    return run
