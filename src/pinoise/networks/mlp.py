"""Fully connected networks: f_θ for vectors, the heads after any encoder, and the product that both are made of.

The product is that of the faster of the two libraries that torch brings for CPUs. torch multiplies matrices in single
precision with MKL. On AMD's processors MKL leaves their AVX-512 units unused, and oneDNN, which torch uses for
convolutions, is more than twice as fast (``benchmarks/bench``). The two round differently.
"""

from __future__ import annotations

import math
import platform
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import register_flop_formula

from pinoise.choices import Size, within
from pinoise.errors import UserError

LEAST_PRODUCTS = 1 << 20  # multiply-accumulates below which the way to oneDNN takes longer than it saves


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
    if ONEDNN_IS_FASTER and torch.backends.mkldnn.enabled and _suits_onednn(x, weight):
        product: Tensor = OneDNNLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
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


@torch.library.custom_op(
    "pinoise::linear", mutates_args=(), device_types="cpu", schema="(Tensor x, Tensor weight, Tensor? bias) -> Tensor"
)
def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """X Wᵀ + b by oneDNN, as an operator of torch, so that profilers and counters see it."""
    # The only name of torch here that it does not document. The documented way, x.to_mkldnn() and F.linear, gives the
    # same numbers, but copies transposed matrices: a forward and a backward pass together take a sixth longer.
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


@onednn_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[0])


@register_flop_formula(torch.ops.pinoise.linear)
def _(x: torch.Size, weight: torch.Size, *_: object, **__: object) -> int:
    return 2 * x[0] * x[1] * weight[0]


class OneDNNLinear(torch.autograd.Function):
    """The rules of ``onednn_linear``. Those that ``torch.library`` registers do not serve ``torch.func``."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the product."""
        product: Tensor = onednn_linear(x, weight, bias)
        return product

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what both derivatives need."""
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, W and b."""
        x, weight = ctx.saved_tensors
        (gradient,), (for_x, for_weight, for_bias) = gradients, ctx.needs_input_grad
        # ``linear`` rather than the bare product, so that these gradients have gradients.
        return (
            linear(gradient, weight.T) if for_x else None,
            linear(gradient.T, x.T) if for_weight else None,
            gradient.sum(dim=0) if for_bias else None,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        """Return the derivative along tangents of x, W and b."""
        x, weight = ctx.saved_tensors
        along_x, along_weight, along_bias = tangents
        found = x.new_zeros(()) if along_bias is None else along_bias
        if along_x is not None:
            found = found + along_x @ weight.T
        return (found if along_weight is None else found + x @ along_weight.T).expand(len(x), len(weight))

    @staticmethod
    def vmap(
        info: Any, dims: tuple[int | None, ...], x: Tensor, weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, int]:
        """Return torch's own product of a batch of matrices."""
        x, weight = (part if at is None else part.movedim(at, 0) for part, at in zip((x, weight), dims, strict=False))
        product = x @ weight.mT
        if bias is not None:
            product = product + (bias if dims[2] is None else bias.movedim(dims[2], 0)[:, None])
        return product, 0


def _has_slow_mkl() -> bool:
    """Whether MKL leaves half of this processor unused. The machine alone decides, so that runs can be repeated."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in of_processor("vendor_id")


def of_processor(field: str) -> str:
    """Return what Linux says of this machine's processor, or elsewhere what Python does."""
    info = Path("/proc/cpuinfo")
    found = re.search(rf"{field}\s*: (.+)", info.read_text(errors="replace")) if info.exists() else None
    return found[1] if found else platform.processor()


ONEDNN_IS_FASTER = _has_slow_mkl() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _suits_onednn(x: Tensor, weight: Tensor) -> bool:
    """Whether both are matrices in single precision on a CPU, large enough, and nothing records a graph of torch's."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or torch.is_autocast_enabled("cpu"):
        return False
    if any(each.ndim != 2 or each.dtype != torch.float32 or each.device.type != "cpu" for each in (x, weight)):
        return False
    return x.shape[1] == weight.shape[1] and x.shape[0] * weight.numel() >= LEAST_PRODUCTS


def check_sizes(owner: str, **sizes: int) -> None:
    """Refuse sizes of layers that are out of range.

    >>> check_sizes("the head", hidden=0)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: hidden of the head is 0: it must be from 1 to 65536.
    """
    for name, size in sizes.items():
        within(f"{name} of {owner}", size, Size)


def width_of(name: str, module: nn.Module) -> int:
    """Return the output width of a module.

    >>> width_of("head", nn.Linear(3, 2))
    2
    """
    features = getattr(module, "out_features", None)
    if not isinstance(features, int):
        kind = type(module).__name__
        raise UserError(f"the {name} {kind} does not state its output size: set its integer attribute out_features.")
    return features


HIDDEN = 1024  # the width of fully connected layers in the paper


class MLPEncoder(nn.Module):
    """The paper's backbone for vectors: three fully connected layers d→1024→1024→256.

    Samples of any shape are flattened.

    >>> import torch
    >>> encoder = MLPEncoder((2, 3), hidden=8, out_features=4)
    >>> encoder(torch.zeros(5, 2, 3)).shape, encoder.out_features
    (torch.Size([5, 4]), 4)
    """

    def __init__(self, shape: tuple[int, ...], *, hidden: Size = HIDDEN, out_features: Size = 256) -> None:
        super().__init__()
        check_sizes("the encoder", hidden=hidden, out_features=out_features)
        self.shape = shape
        self.hidden = hidden
        self.out_features = out_features
        self.layers = nn.Sequential(
            nn.Flatten(),
            Linear(math.prod(shape), hidden),
            nn.ReLU(inplace=True),
            Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            Linear(hidden, out_features),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation (m, out_features) of samples (m, *shape)."""
        features: Tensor = self.layers(x)
        return features


HEAD_HIDDEN = 256  # the width of a head's hidden layers

PROJECTION = 128  # the width of a projection

PROTOTYPES = 1024  # the number of prototypes that DINO's student and teacher score


class ProjectionHead(nn.Sequential):
    """The paper's projection head on the learned representation: a hidden layer with ReLU, then a linear layer.

    >>> import torch
    >>> ProjectionHead(4, hidden=8, out_features=2)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features: int, *, hidden: int = HEAD_HIDDEN, out_features: int = PROJECTION) -> None:
        check_sizes("the head", hidden=hidden, out_features=out_features)
        super().__init__(*self.layers(in_features, hidden, out_features))
        self.out_features = out_features

    @staticmethod
    def layers(in_features: int, hidden: int, out_features: int) -> tuple[nn.Module, ...]:
        """Return the layers, in their order."""
        return Linear(in_features, hidden), nn.ReLU(inplace=True), Linear(hidden, out_features)


class BatchNormHead(ProjectionHead):
    """BYOL's projection head: a hidden layer with batch normalisation and ReLU, then a linear layer.

    >>> import torch
    >>> BatchNormHead(4, hidden=8, out_features=2)(torch.randn(5, 4)).shape
    torch.Size([5, 2])
    """

    @staticmethod
    def layers(in_features: int, hidden: int, out_features: int) -> tuple[nn.Module, ...]:
        """Return the layers, in their order."""
        return *_normalised_layer(in_features, hidden), Linear(hidden, out_features)


class PredictionHead(BatchNormHead):
    """A predictor with equal input and output width. By default its hidden layer has a quarter of that width.

    >>> import torch
    >>> PredictionHead(8)(torch.randn(5, 8)).shape
    torch.Size([5, 8])
    """

    def __init__(self, features: int, *, hidden: int | None = None) -> None:
        super().__init__(features, hidden=max(features // 4, 1) if hidden is None else hidden, out_features=features)


class SimSiamHead(ProjectionHead):
    """SimSiam's projection head: three layers with batch normalisation, the last without a learned scale and shift.

    >>> import torch
    >>> SimSiamHead(4, hidden=8, out_features=2)(torch.randn(5, 4)).mean(dim=0).abs().max().item() < 1e-6
    True
    """

    @staticmethod
    def layers(in_features: int, hidden: int, out_features: int) -> tuple[nn.Module, ...]:
        """Return the layers, in their order."""
        return (
            *_normalised_layer(in_features, hidden),
            *_normalised_layer(hidden, hidden),
            Linear(hidden, out_features, bias=False),
            nn.BatchNorm1d(out_features, affine=False),
        )


class PrototypeHead(nn.Module):
    """DINO's head: three layers with GELU, then the cosine of their output with every prototype.

    A prototype is a direction: the length of its weight vector has no effect and is never learned.

    >>> import torch
    >>> head = PrototypeHead(4, hidden=8, bottleneck=3, prototypes=10)
    >>> scores = head(torch.randn(5, 4))
    >>> scores.shape, bool((scores.abs() <= 1.0001).all())
    (torch.Size([5, 10]), True)
    """

    def __init__(
        self, in_features: int, *, hidden: int = HEAD_HIDDEN, bottleneck: int = PROJECTION, prototypes: int = PROTOTYPES
    ) -> None:
        super().__init__()
        check_sizes("the head", hidden=hidden, bottleneck=bottleneck, prototypes=prototypes)
        self.layers = nn.Sequential(
            Linear(in_features, hidden),
            nn.GELU(),
            Linear(hidden, hidden),
            nn.GELU(),
            Linear(hidden, bottleneck),
        )
        self.prototypes = Linear(bottleneck, prototypes, bias=False)
        self.out_features = prototypes

    def forward(self, h: Tensor) -> Tensor:
        """Return the scores (m, prototypes) of features (m, in_features), each between −1 and 1."""
        return linear(F.normalize(self.layers(h), dim=1), F.normalize(self.prototypes.weight, dim=1))


def _normalised_layer(in_features: int, out_features: int) -> tuple[nn.Module, ...]:
    # No bias: batch normalisation would subtract it, and has its own shift.
    return Linear(in_features, out_features, bias=False), nn.BatchNorm1d(out_features), nn.ReLU(inplace=True)
