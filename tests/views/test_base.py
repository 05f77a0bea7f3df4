from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.noise import Noise, PiNoise, Support
from pinoise.views import (
    Batch,
    FunctionView,
    GaussianNoise,
    Identity,
    Mixup,
    Neighbour,
    PiNoiseView,
    ScarfSwap,
    View,
    Viewmaker,
    VimeSwap,
)


def near_copies(x: Tensor) -> Support:
    """A bank in which the neighbours of every row are its own slightly moved copies, which are no training rows."""
    bank = (x + 0.1 * torch.randn(5, *x.shape)).flatten(0, 1)
    return Support(bank, numbers=torch.arange(len(bank)), rows=1000, k=4, mutual=False)


# Every view at a strength that keeps it near its sample, made for the rows that it will see.
MAKERS: dict[str, Callable[[Tensor], View]] = {
    "identity": lambda x: Identity(),
    "pi": lambda x: PiNoiseView(PiNoise(x.shape[1:], hidden=8, initial_scale=0.1)),
    "gaussian": lambda x: GaussianNoise(torch.ones(x.shape[1:]), sigma=0.1),
    "scarf": lambda x: ScarfSwap(torch.randn(x.shape), rate=0.1),
    "vime": lambda x: VimeSwap(rate=0.1),
    "mixup": lambda x: Mixup(alpha=0.9),
    "neighbour": lambda x: Neighbour(near_copies(x)),
    "viewmaker": lambda x: Viewmaker(torch.ones(x.shape[1:]), budget=0.1, hidden=8),
    "function": lambda x: FunctionView(lambda x: x + 0.1 * torch.randn_like(x)),
}
RANDOM = [name for name in MAKERS if name != "identity"]
SHAPES = [(24,), (4, 6), (2, 3, 4)]


def make_batch(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Batch:
    x = torch.randn(9, *shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return Batch(x, torch.arange(100, 109))


def make_view(name: str, batch: Batch) -> View:
    torch.manual_seed(1)
    return MAKERS[name](batch.x).to(batch.x.dtype)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_view_keeps_shape_type_rows_and_the_original(
    name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    batch = make_batch(shape, dtype)
    original = batch.x.clone()
    result = make_view(name, batch)(batch)
    assert result.x.shape == batch.x.shape
    assert result.x.dtype == dtype
    assert bool(result.x.isfinite().all())
    assert torch.equal(result.rows, batch.rows)
    assert torch.equal(batch.x, original)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_row_i_of_every_view_is_a_view_of_row_i(name: str, shape: tuple[int, ...]) -> None:
    batch = make_batch(shape)
    result = make_view(name, batch)(batch)
    nearest = torch.cdist(result.x.detach().flatten(1), batch.x.flatten(1)).argmin(dim=1)
    assert nearest.tolist() == list(range(9))
    assert bool((result.x != batch.x).any()) == (name != "identity")


@pytest.mark.parametrize("name", MAKERS)
def test_the_seed_decides_every_view(name: str) -> None:
    batch = make_batch((4, 6))
    view = make_view(name, batch)
    results = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        results.append(view(batch).x)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2]) == (name not in RANDOM)


@pytest.mark.parametrize("name", RANDOM)
def test_several_draws_of_a_random_view_differ(name: str) -> None:
    batch = make_batch((4, 6))
    draws = make_view(name, batch).draw(batch, 3)
    assert len(draws) == 3
    assert all(torch.equal(draw.rows, batch.rows) for draw in draws)
    assert not any(torch.equal(draws[a].x, draws[b].x) for a, b in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize("name", MAKERS)
def test_every_view_takes_a_batch_of_one(name: str) -> None:
    batch = Batch(torch.randn(1, 4, 6), torch.zeros(1, dtype=torch.long))
    assert bool(make_view(name, batch)(batch).x.isfinite().all())


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "pi"])
def test_a_predefined_view_carries_the_learned_noise_along(name: str) -> None:
    batch = make_batch((24,))._replace(
        noise=Noise(torch.ones(9, 24), torch.ones(1, 24)), drew=torch.ones(9, dtype=torch.bool)
    )
    result = make_view(name, batch)(batch)
    assert result.noise is batch.noise
    assert result.drew is batch.drew


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_known_of_a_sample_is_not_taken_for_known_of_its_view(name: str) -> None:
    batch = make_batch((24,))._replace(features=torch.ones(9, 5))
    features = make_view(name, batch)(batch).features
    assert features is (batch.features if name == "identity" else None)


@pytest.mark.parametrize("name", MAKERS)
def test_a_view_says_whether_it_is_against_the_encoder_and_goes_by_rows(name: str) -> None:
    view = make_view(name, make_batch((24,)))
    assert view.adversarial == (name == "viewmaker")
    assert view.by_row == (name == "neighbour")
    assert not view.for_images


def test_a_module_as_the_function_of_a_view_belongs_to_it_and_learns() -> None:
    network = torch.nn.Linear(24, 24)
    view = FunctionView(network)
    assert list(view.parameters()) == list(network.parameters())
    gradients = torch.autograd.grad(view(make_batch((24,))).x.square().sum(), list(view.parameters()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x[:, :5], r"\(9, 5\)"),
        (lambda x: x[:4], r"\(4, 24\)"),
        (lambda x: x.mean(), r"\(\)"),
        (lambda x: (x, x), "tuple"),
        (lambda x: x.numpy(), "ndarray"),
        (lambda x: None, "NoneType"),
    ],
    ids=["fewer features", "fewer samples", "a number", "a pair", "numpy", "nothing"],
)
def test_a_function_that_returns_something_else_is_refused(function: Callable[[Tensor], Tensor], found: str) -> None:
    with pytest.raises(
        UserError, match=rf"the view returned (shape )?{found}: it must return a tensor of shape \(9, 24\)"
    ):
        FunctionView(function)(make_batch((24,)))


@pytest.mark.parametrize("factor", [-1.0, 0.5])
def test_with_gradient_scales_what_flows_back_from_samples_noise_and_scale(factor: float) -> None:
    sources = [torch.randn(4, 3, requires_grad=True) for _ in range(3)]
    x, epsilon, scale = (2 * source for source in sources)
    drew, features = torch.tensor([True, False, True, True]), torch.randn(4, 5)
    batch = Batch(x, torch.arange(4), Noise(epsilon, scale), drew, features)
    scaled = batch.with_gradient(factor)
    assert scaled.noise is not None
    assert torch.equal(scaled.x, x)
    assert torch.equal(scaled.noise.epsilon, epsilon)
    assert torch.equal(scaled.noise.scale, scale)
    assert (scaled.rows, scaled.drew, scaled.features) == (batch.rows, drew, features)
    loss = scaled.x.sum() + 10 * scaled.noise.epsilon.sum() + 100 * scaled.noise.scale.sum()
    for source, weight, gradient in zip(sources, (1, 10, 100), torch.autograd.grad(loss, sources), strict=True):
        torch.testing.assert_close(gradient, torch.full_like(source, 2 * weight * factor))


def test_with_gradient_of_zero_leaves_nothing_to_learn_from() -> None:
    source = torch.randn(4, 3, requires_grad=True)
    scaled = Batch(2 * source, torch.arange(4), Noise(source + 1, source + 2)).with_gradient(0.0)
    assert scaled.noise is not None
    assert not any(part.requires_grad for part in (scaled.x, *scaled.noise))
