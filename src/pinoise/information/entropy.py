"""Entropies of the task: what is unknown of α ~ N(0, 1/γ), γ = exp(−ℓ), without and with the noise known."""

from __future__ import annotations

import math

from torch import Tensor

from pinoise.information.quadrature import POINTS, check_losses, mean_divergence

STANDARD_ENTROPY = math.log(2 * math.pi * math.e) / 2  # of N(0, 1), in nats


def gaussian_entropy(loss: Tensor) -> Tensor:
    """h of N(0, 1/γ) with γ = exp(−ℓ): ½ log 2πe + ½ ℓ, element by element.

    >>> import torch
    >>> gaussian_entropy(torch.tensor([0.0, 2.0]))
    tensor([1.4189, 2.4189])
    """
    return STANDARD_ENTROPY + loss / 2


def conditional_entropy(losses: Tensor) -> Tensor:
    """H(T|E) of every sample: the mean of h over the K draws of ε, shape (n, K) to (n,).

    >>> import torch
    >>> conditional_entropy(torch.tensor([[0.0, 4.0]]))
    tensor([2.4189])
    """
    check_losses(losses)
    return gaussian_entropy(losses.mean(1))


def marginal_entropy(losses: Tensor, *, points: int = POINTS) -> Tensor:
    """Entropy of p(α|x) = mean_k N(0, 1/γ(x, ε_k)), the noise being unknown, shape (n, K) to (n,).

    Args:
        losses: ℓ of n samples under K draws of ε, shape (n, K).
        points: the size of the quadrature's grid.

    >>> import torch
    >>> marginal_entropy(torch.tensor([[2.0, 2.0], [0.0, 4.0]]))
    tensor([2.4189, 2.7998])
    """
    return conditional_entropy(losses) + mean_divergence(losses, points=points)
