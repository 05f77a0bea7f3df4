"""Products with weights, by the faster of the two libraries of products that torch brings for CPUs.

torch multiplies matrices in single precision with MKL. On AMD's processors MKL leaves their AVX-512 units unused, and
oneDNN, which torch uses for convolutions, is more than twice as fast (``benchmarks/bench``). The two round differently.
"""

from __future__ import annotations

import platform
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

_LEAST_PRODUCTS = 1 << 20  # multiply-accumulates below which the way to oneDNN takes longer than it saves


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, as ``torch.nn.functional.linear``.

    ``torch.backends.mkldnn.flags(enabled=False)`` leaves all products to MKL.

    Args:
        x: shape (m, k).
        weight: W, shape (n, k).
        bias: b, shape (n,).

    >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))
    tensor([[16.]])
    """
    if _is_plain(x, weight) and _is_large(x, weight) and prefers_onednn():
        product: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """A fully connected layer on ``linear``; else it is torch's own, with the same weights.

    >>> layer = Linear(3, 2)
    >>> layer(torch.zeros(5, 3)).shape, list(layer.state_dict()) == list(nn.Linear(3, 2).state_dict())
    (torch.Size([5, 2]), True)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        return linear(x, self.weight, self.bias)


@cache
def has_slow_mkl() -> bool:
    """Whether MKL leaves half of this processor unused. It depends on the machine alone, so that runs can be repeated.

    >>> has_slow_mkl() in (True, False)
    True
    """
    libraries = torch.backends.mkl.is_available() and has_product()
    return libraries and torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in _vendor()


def has_product() -> bool:
    """Whether this torch has oneDNN's product, and what tells where it may be used: no name of torch's public ones.

    >>> has_product() in (True, False)
    True
    """
    hidden = ("_get_mkldnn_enabled", "_is_tracing", "_functorch.is_functorch_wrapped_tensor")
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(forward_ad, "_current_level")
        and all(_has(torch._C, name) for name in hidden)
    )


def _has(owner: object, name: str) -> bool:
    try:
        attrgetter(name)(owner)
    except AttributeError:
        return False
    return True


def prefers_onednn() -> bool:
    """Whether products go to oneDNN: it is faster here and not switched off.

    >>> with torch.backends.mkldnn.flags(enabled=False):
    ...     prefers_onednn()
    False
    """
    return has_slow_mkl() and torch._C._get_mkldnn_enabled()


def count_products(x: Any, weight: Any, *_: Any, **__: Any) -> int:
    """Return the operations of oneDNN's product of matrices with these shapes, as torch's counter wants to know it.

    >>> count_products((5, 3), (2, 3))
    60
    """
    return 2 * int(x[0] * x[1] * weight[0])


ONEDNN_COUNTS = {torch.ops.mkldnn._linear_pointwise: count_products} if has_product() else {}
"""For torch's ``FlopCounterMode``, which does not know oneDNN's product."""


def _vendor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        return info.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    return platform.processor()


def _is_large(x: Tensor, weight: Tensor) -> bool:
    fit = x.ndim == weight.ndim == 2 and x.shape[1] == weight.shape[1]
    return fit and x.shape[0] * weight.numel() >= _LEAST_PRODUCTS


def _is_plain(x: Tensor, weight: Tensor) -> bool:
    """Whether both are ordinary tensors on a CPU, and nothing traces, transforms or lowers what is done with them."""
    # First: what compiles or exports must see neither the sizes, on which its graph would depend, nor the processor.
    if torch.compiler.is_compiling() or torch._C._is_tracing() or forward_ad._current_level >= 0:
        return False
    for each in (x, weight):
        if type(each) not in (Tensor, nn.Parameter) or each.dtype != torch.float32 or each.device.type != "cpu":
            return False
        if torch._C._functorch.is_functorch_wrapped_tensor(each):
            return False
    return not torch.is_autocast_enabled("cpu")


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (gradient,), (for_x, for_weight, for_bias) = gradients, ctx.needs_input_grad
        # ``linear`` rather than the bare product, so that these gradients have gradients.
        return (
            linear(gradient, weight.T) if for_x else None,
            linear(gradient.T, x.T) if for_weight else None,
            gradient.sum(dim=0) if for_bias else None,
        )
