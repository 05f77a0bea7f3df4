"""Products through oneDNN: the same numbers as torch's, seen by everything in torch that looks at products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from pinoise.networks import mlp as module
from pinoise.networks.mlp import Linear, OneDNNLinear, linear, onednn_linear
from pinoise.noise import make_generator

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no product of oneDNN's"
)
M, K, N = 128, 96, 112


@pytest.fixture(params=[True, False], ids=["oneDNN", "MKL"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let the processor be one on which oneDNN is faster, or one on which it is not."""
    monkeypatch.setattr(module, "ONEDNN_IS_FASTER", request.param)
    return bool(request.param)


def operands(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=draw) for shape in ((M, K), (N, K), (N,)))
    return tuple(each.to(dtype).requires_grad_() for each in (x, weight, bias))  # type: ignore[return-value]


def calls(function: Callable[[], object]) -> int:
    """How often torch's profiler sees the product of oneDNN."""
    with torch.profiler.profile() as profile:
        function()
    return sum(event.count for event in profile.key_averages() if event.key == "pinoise::linear")


def test_product_and_gradients_equal_those_in_double_precision(either: bool) -> None:
    single, double = operands(), operands(torch.float64)
    assert calls(lambda: linear(*single).square().sum().backward()) == (3 if either else 0)
    F.linear(*double).square().sum().backward()
    assert torch.allclose(linear(*single).double(), F.linear(*double), rtol=1e-4, atol=1e-4)
    for mine, exact in zip(single, double, strict=True):
        assert mine.grad is not None
        assert exact.grad is not None
        assert torch.allclose(mine.grad.double(), exact.grad, rtol=1e-4, atol=1e-3)


def test_gradients_have_gradients_and_those_that_nobody_needs_are_not_computed(either: bool) -> None:
    found = []
    for function, dtype in ((linear, torch.float32), (F.linear, torch.float64)):
        x, weight, bias = operands(dtype)
        (slope,) = torch.autograd.grad(function(x, weight, bias).tanh().sum(), x, create_graph=True)
        slope.square().sum().backward()
        assert weight.grad is not None
        found.append(weight.grad.double())
    mine, exact = found
    assert (mine - exact).norm() < 1e-5 * exact.norm()
    x, weight, _ = operands()
    assert calls(lambda: linear(x.detach(), weight).sum().backward()) == (2 if either else 0)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda x: x[:4], id="few rows"),
        pytest.param(lambda x: x.double(), id="double precision"),
        pytest.param(lambda x: x.reshape(2, -1, K), id="a sequence for every sample"),
    ],
)
def test_other_products_stay_with_torch(changed: Callable[[Tensor], Tensor], either: bool) -> None:
    x, weight, bias = operands()
    given = changed(x)
    weight, bias = weight.to(given.dtype), bias.to(given.dtype)
    assert torch.equal(linear(given, weight, bias), F.linear(given, weight, bias))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        Linear(K, 4096)(torch.zeros(512, K + 1))


@pytest.mark.parametrize(
    "transform",
    [
        pytest.param(lambda f: torch.func.grad(f, argnums=1), id="gradient"),
        pytest.param(lambda f: torch.func.jacfwd(f, argnums=2), id="forward mode"),
        pytest.param(torch.func.hessian, id="second derivatives"),
        pytest.param(lambda f: lambda *given: torch.func.jvp(f, given, given)[1], id="along all operands"),
        pytest.param(
            lambda f: lambda x, *of: torch.func.vmap(torch.func.grad(f, 1), (0, None, None))(x[:, None], *of),
            id="gradients of samples",
        ),
        pytest.param(
            lambda f: lambda x, w, b: torch.func.vmap(f, (None, 0, 0))(x, torch.stack([w, 2 * w]), torch.stack([b, b])),
            id="several layers",
        ),
    ],
)
def test_transforms_of_torch_find_the_derivatives_of_torchs_product(transform: Callable[..., Any]) -> None:
    def loss(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x, weight, bias: function(x, weight, bias).tanh().square().sum()

    x, weight, bias = (each.detach()[:4] for each in operands())
    given = x[:, :3].contiguous(), weight[:, :3].contiguous(), bias
    mine, theirs = (transform(loss(function))(*given) for function in (OneDNNLinear.apply, F.linear))
    assert mine.abs().sum() > 0
    assert torch.allclose(mine, theirs, atol=1e-5)


def test_a_product_that_torch_takes_in_half_precision_or_without_onednn_is_torchs() -> None:
    x, weight, bias = (each.detach() for each in operands())
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))


def test_the_operator_keeps_the_rules_of_torchs_library() -> None:
    torch.library.opcheck(onednn_linear, tuple(each.detach() for each in operands()))
    torch.library.opcheck(onednn_linear, (*(each.detach() for each in operands()[:2]), None))


def test_counters_of_torch_find_the_papers_figure_for_a_generator_on_any_processor(either: bool) -> None:
    generator, x = make_generator("mlp", (561,), 2), torch.zeros(256, 561)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        generator(x)
    assert counter.get_total_flops() == 2 * 256 * (3 * 561 * 1024 + 3 * 1024**2)
    assert f"{counter.get_total_flops() / 2:.4e}" == "1.2465e+09"


def test_counters_of_torch_see_backward_passes_on_any_processor(either: bool) -> None:
    x, weight, bias = operands()
    with FlopCounterMode(display=False) as counter:
        linear(x, weight, bias).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * M * K * N


def test_a_layer_is_torchs_layer_with_the_same_weights(either: bool) -> None:
    torch.manual_seed(0)
    ours = Linear(K, N)
    torch.manual_seed(0)
    theirs = nn.Linear(K, N)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(ours.weight, theirs.weight)
    x, _, _ = operands()
    assert torch.allclose(ours(x), theirs(x), atol=1e-5)


def test_a_layer_compiles_into_one_graph_for_any_number_of_rows(either: bool) -> None:
    layer = Linear(K, N)
    x, _, _ = operands()
    compiled = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
    for rows in (M, M // 2):
        assert torch.equal(compiled(x[:rows]), F.linear(x[:rows], layer.weight, layer.bias))
