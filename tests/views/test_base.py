from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pinoise.noise import PiNoise
from pinoise.views import (
    Batch,
    BatchGaussian,
    Difference,
    Extrapolation,
    GaussianNoise,
    Identity,
    Interpolation,
    Mixup,
    PiNoiseView,
    ScarfSwap,
    View,
    VimeSwap,
)
from pinoise.views.base import per_sample

# Every view at a strength that keeps it near its sample, made for the rows that it will see.
MAKERS: dict[str, Callable[[Tensor], View]] = {
    "identity": lambda x: Identity(),
    "pi": lambda x: PiNoiseView(PiNoise(x.shape[1:], hidden=8, initial_scale=0.1)),
    "gaussian": lambda x: GaussianNoise(torch.ones(x.shape[1:]), sigma=0.1),
    "scarf": lambda x: ScarfSwap(torch.randn(x.shape), rate=0.1),
    "vime": lambda x: VimeSwap(rate=0.1),
    "mixup": lambda x: Mixup(alpha=0.9),
    "interpolation": lambda x: Interpolation(ratio=0.1),
    "extrapolation": lambda x: Extrapolation(ratio=0.1),
    "batch gaussian": lambda x: BatchGaussian(ratio=0.1),
    "difference": lambda x: Difference(ratio=0.1),
}
RANDOM = [name for name in MAKERS if name not in ("identity", "extrapolation")]
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
    batch = make_batch((24,))._replace(noise=torch.ones(9, 24), drew=torch.ones(9, dtype=torch.bool))
    result = make_view(name, batch)(batch)
    assert result.noise is batch.noise
    assert result.drew is batch.drew


def test_the_default_draw_calls_the_view_once_per_draw() -> None:
    class Counter(View):
        calls = 0

        def forward(self, batch: Batch) -> Batch:
            self.calls += 1
            return batch.moved(batch.x + self.calls)

    draws = Counter().draw(Batch(torch.zeros(2, 1), torch.arange(2)), 3)
    assert [float(draw.x[0, 0]) for draw in draws] == [1.0, 2.0, 3.0]


def test_a_view_without_forward_is_abstract() -> None:
    with pytest.raises(NotImplementedError):
        View()(make_batch((24,)))


@pytest.mark.parametrize("shape", [(), *SHAPES])
def test_per_sample_broadcasts_over_samples_of_any_rank(shape: tuple[int, ...]) -> None:
    values, x = torch.arange(3.0), torch.ones(3, *shape)
    product = per_sample(values, x) * x
    for i in range(3):
        assert product[i].flatten().tolist() == [float(i)] * math.prod(shape)
