"""A gradient that is scaled, stopped or reversed on its way back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.factor * gradients[0], None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return x with its gradient multiplied by ``factor``: 0 stops the gradient, −1 reverses it.

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(3 * scale_gradient(x, -1.0).sum(), x)
    (tensor([-3.]),)
    """
    if factor == 0:
        return x.detach()
    scaled: Tensor = _ScaleGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return scaled
