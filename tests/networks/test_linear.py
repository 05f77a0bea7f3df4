"""Products through oneDNN: the same numbers as torch's, wherever torch is asked for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from pinoise.networks import mlp as module
from pinoise.networks.mlp import Linear, linear
from pinoise.paper.counting import counting

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
M, K, N = 128, 96, 112


@pytest.fixture(autouse=True)
def on_any_processor(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Multiply with oneDNN whatever the processor, and count how often."""
    calls: list[int] = []
    product = module._product

    def counted(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        calls.append(len(x))
        return product(x, weight, bias)

    monkeypatch.setattr(module, "has_slow_mkl", lambda: True)
    monkeypatch.setattr(module, "_product", counted)
    return calls


def operands(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=draw) for shape in ((M, K), (N, K), (N,)))
    return tuple(each.to(dtype).requires_grad_() for each in (x, weight, bias))  # type: ignore[return-value]


def test_product_and_gradients_equal_those_in_double_precision(on_any_processor: list[int]) -> None:
    single, double = operands(), operands(torch.float64)
    for function, given in ((linear, single), (F.linear, double)):
        function(*given).square().sum().backward()
    assert len(on_any_processor) == 3  # the product, and those for the gradients of x and W
    assert torch.allclose(linear(*single).double(), F.linear(*double), rtol=1e-4, atol=1e-4)
    for mine, exact in zip(single, double, strict=True):
        assert mine.grad is not None
        assert exact.grad is not None
        assert torch.allclose(mine.grad.double(), exact.grad, rtol=1e-4, atol=1e-3)


def test_gradients_have_gradients() -> None:
    found = []
    for function, dtype in ((linear, torch.float32), (F.linear, torch.float64)):
        x, weight, bias = operands(dtype)
        (slope,) = torch.autograd.grad(function(x, weight, bias).tanh().sum(), x, create_graph=True)
        slope.square().sum().backward()
        assert weight.grad is not None
        found.append(weight.grad.double())
    mine, exact = found
    assert (mine - exact).norm() < 1e-5 * exact.norm()


def test_gradients_that_nobody_needs_are_not_computed(on_any_processor: list[int]) -> None:
    x, weight, _ = operands()
    linear(x.detach(), weight).sum().backward()
    assert len(on_any_processor) == 2


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda x: x[:4], id="few rows"),
        pytest.param(lambda x: x.double(), id="double precision"),
        pytest.param(lambda x: x.reshape(2, -1, K), id="a sequence for every sample"),
    ],
)
def test_other_products_stay_with_torch(changed: Callable[[Tensor], Tensor], on_any_processor: list[int]) -> None:
    x, weight, bias = operands()
    given = changed(x)
    weight, bias = weight.to(given.dtype), bias.to(given.dtype)
    assert torch.equal(linear(given, weight, bias), F.linear(given, weight, bias))
    assert on_any_processor == []


def test_transforms_of_torch_see_torchs_product(on_any_processor: list[int]) -> None:
    x, weight, bias = (each.detach() for each in operands())
    expected = F.linear(x, weight, bias)
    assert torch.equal(torch.func.vmap(lambda row: linear(row[None], weight, bias)[0])(x), expected)
    slope = torch.func.jvp(lambda w: linear(x, w, bias), (weight,), (weight,))[1]
    assert torch.allclose(slope, expected - bias, atol=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(x, weight, bias), expected)
    assert on_any_processor == []


def test_wrong_shapes_are_refused_as_torch_refuses_them() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        Linear(K, 4096)(torch.zeros(512, K + 1))


def test_operations_are_counted_as_those_of_torchs_product() -> None:
    x, weight, bias = operands()
    with FlopCounterMode(display=False) as torchs:
        F.linear(x, weight, bias).sum().backward()
    with counting() as tally:
        linear(x, weight, bias).sum().backward()
    assert 2 * tally.operations.multiply_accumulates == torchs.get_total_flops() == 3 * 2 * M * K * N


def test_a_layer_is_torchs_layer_with_the_same_weights() -> None:
    torch.manual_seed(0)
    ours = Linear(K, N)
    torch.manual_seed(0)
    theirs = nn.Linear(K, N)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(ours.weight, theirs.weight)
    x, _, _ = operands()
    assert torch.allclose(ours(x), theirs(x), atol=1e-5)


def test_a_layer_compiles_into_one_graph_for_any_number_of_rows(on_any_processor: list[int]) -> None:
    layer = Linear(K, N)
    x, _, _ = operands()
    compiled = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
    for rows in (M, M // 2):
        assert torch.equal(compiled(x[:rows]), F.linear(x[:rows], layer.weight, layer.bias))
    assert on_any_processor == []


def test_a_torch_without_the_product_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.has_product()
    monkeypatch.delattr(torch._C, "_is_tracing")
    assert not module.has_product()
