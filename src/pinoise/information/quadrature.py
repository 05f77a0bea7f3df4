"""The one integral of this package: how far Gaussians of different scale lie from their mixture."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pinoise.errors import UserError

POINTS = 128
_FEWEST_POINTS = 16
_FINE_STEP = 0.2  # of the substituted variable; there the error is below 1e-6
_TAIL = math.log(16)  # the grid ends at 8 standard deviations of the widest component, as sinh(t) ≈ exp(t) / 2
_WIDEST_GAP = 40.0  # components this far apart in ℓ overlap by exp(−20): a wider gap changes nothing
_MAX_ELEMENTS = 2**21  # of the largest intermediate, 16 MB in double precision


def mean_divergence(losses: Tensor, *, points: int = POINTS) -> Tensor:
    """Mean over k of KL(N(0, exp ℓ_k) ‖ p), where p is the mixture mean_k N(0, exp ℓ_k).

    It is what the mixture's entropy has above the mean entropy of its components. Integrating that difference keeps
    small values exact where the difference of two integrals would drown them: on every grid the sum has no negative
    term, and it is 0 to rounding when all losses are equal.

    With α = s sinh(t), s the smallest component's standard deviation, the integrand is smooth and even in t and falls
    off doubly exponentially, for which the trapezoid rule converges geometrically. With 128 points the error is below
    1e-7 when the losses of a row lie within 30 of each other and below 1e-3 within 100; ``sufficient_points`` has more.

    Args:
        losses: ℓ of n samples under K draws, shape (n, K).
        points: the size of the grid.

    Returns:
        Shape (n,), differentiable; nan for a row that is not finite.

    >>> mean_divergence(torch.tensor([[0.0, 1.0, 2.0], [0.0, 50.0, 100.0]]))  # the second is log 3
    tensor([0.1219, 1.0986])
    """
    check_losses(losses)
    if points < _FEWEST_POINTS:
        raise UserError(f"points is {points}: the quadrature needs at least {_FEWEST_POINTS}.")
    rows = max(1, _MAX_ELEMENTS // (losses.shape[1] * points))
    return torch.cat([_divergence(chunk, points) for chunk in losses.split(rows)])


def sufficient_points(losses: Tensor) -> int:
    """Return the number of points that keeps the error below 1e-6 for all rows (n, K); it waits for the device.

    >>> sufficient_points(torch.tensor([[0.0, 1.0]])), sufficient_points(torch.tensor([[0.0, 40.0, 80.0, 120.0]]))
    (128, 315)
    """
    check_losses(losses)
    widest = float(_relative_log_scales(losses.detach())[:, -1].max()) if len(losses) else 0.0
    return max(POINTS, math.ceil((widest + _TAIL) / _FINE_STEP) + 1)


def check_losses(losses: Tensor) -> None:
    """Refuse losses that are not floating-point numbers of shape (n, K) with K ≥ 1."""
    if losses.ndim != 2 or losses.shape[1] < 1:
        raise UserError(
            f"losses have the shape {tuple(losses.shape)}: give a row for every sample and a column for every draw."
        )
    if not losses.is_floating_point():
        raise UserError(f"losses are of type {losses.dtype}: give floating-point numbers.")


def _divergence(losses: Tensor, points: int) -> Tensor:
    log_scale = _relative_log_scales(losses)  # (n, K)
    end = log_scale[:, -1:].detach() + _TAIL  # (n, 1)
    t = end * torch.linspace(0, 1, points, dtype=end.dtype, device=end.device)  # (n, points)
    measure = t.cosh().log() + math.log(2 / math.pi) / 2  # dα/dt, and twice the density as only α ≥ 0 is visited
    log_density = (  # (n, K, points)
        measure[:, None]
        - log_scale[:, :, None]
        - t.sinh().square()[:, None] * (torch.exp(-2 * log_scale) / 2)[:, :, None]
    )
    density = log_density.exp()
    log_mixture = density.mean(1).log()  # (n, points)
    integrand = (density * (log_density - log_mixture[:, None])).mean(1)
    step = end[:, 0] / (points - 1)
    divergence = step * (integrand.sum(1) - integrand[:, 0] / 2)  # the far end is 0
    return divergence.where(losses.isfinite().all(1), math.nan).to(losses.dtype)


def _relative_log_scales(losses: Tensor) -> Tensor:
    """Return log s_k of every row (n, K) in rising order from 0, with gaps that are too wide to matter closed."""
    ordered = losses.to(_working_type(losses.device)).sort(dim=1).values
    gaps = ordered.diff(dim=1).clamp(max=_WIDEST_GAP)
    log_scale = torch.cat([torch.zeros_like(ordered[:, :1]), gaps.cumsum(1)], dim=1) / 2
    return log_scale.clamp(max=math.log(torch.finfo(log_scale.dtype).max) / 2 - 4)  # sinh² must not overflow


def _working_type(device: torch.device) -> torch.dtype:
    """Return double precision, or single where the device has no other."""
    return torch.float32 if device.type == "mps" else torch.float64
