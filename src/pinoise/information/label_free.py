"""Scores of an embedding that need no label."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def uniformity(z: Tensor) -> Tensor:
    """−log E exp(−2 ‖z − z'‖²) over pairs of samples, on the unit sphere: higher if samples are spread more evenly.

    Wang and Isola (2020) minimise the negative of it.

    Args:
        z: embeddings (m, o) of m different samples.

    >>> uniformity(torch.tensor([[2.0, 0.0], [-1.0, 0.0]]))  # one pair, at distance 2
    tensor(8.)
    >>> round(float(uniformity(torch.ones(3, 2))), 6)
    0.0
    """
    squares = torch.pdist(F.normalize(z.detach().double(), dim=1)).square()
    return (math.log(len(squares)) - torch.logsumexp(-2 * squares, dim=0)).float()
