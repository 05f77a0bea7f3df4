"""Scores of an embedding that need no label."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


def separation(z: Tensor, *, clusters: int = 20) -> float:
    """The mean silhouette of k-means clusters on the unit sphere: higher if samples form groups apart from each other.

    Args:
        z: embeddings (m, o) of m different samples.
        clusters: the most clusters; with few samples, half as many as samples.

    >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    >>> round(separation(groups), 2)
    0.95
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    unit = F.normalize(z.detach().double(), dim=1).numpy()
    number = min(clusters, len(unit) // 2, len(np.unique(unit, axis=0)) - 1)
    if number < 2:
        return -1.0  # fewer groups than two cannot lie apart
    return float(silhouette_score(unit, KMeans(number, n_init=3, random_state=0).fit_predict(unit)))


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
