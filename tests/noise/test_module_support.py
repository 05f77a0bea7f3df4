"""Noise that moves a sample along the data: the way to a neighbour, plus the noise of the distribution."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.networks import MLPEncoder
from pinoise.noise import PRIOR_WEIGHT, PiNoise, Support, prior_scale
from pinoise.noise.support import REFRESH_EVERY

ROWS = 40
UNIT = torch.tensor([0.5, 0.0, 2.0, 1.0])
GENERATORS = ["mlp", "shared", "global", "constant"]
SETTINGS: list[dict[str, Any]] = [
    {"generator": generator, "distribution": distribution, "mean": mean, "positive": positive, "normalize": normalize}
    for generator, (distribution, mean), (positive, normalize) in product(
        GENERATORS, product(["gaussian", "uniform"], ["zero", "learned"]), [("softplus", None), ("fixed-entropy", 0.7)]
    )
]


def make_bank(shape: tuple[int, ...] = (4,)) -> Tensor:
    rows = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(0)) * UNIT
    return rows.reshape(ROWS, *shape)


def make_support(bank: Tensor, *, complete: bool = True) -> Support:
    every = 1 if complete else 2
    return Support(bank, numbers=every * torch.arange(ROWS), rows=every * ROWS, k=5)


def make_noise(support: Support | None, *, shape: tuple[int, ...] = (4,), **settings: Any) -> PiNoise:
    encoder = MLPEncoder(shape, hidden=8, out_features=4)
    settings = {"initial_scale": 0.3} | settings
    return PiNoise(shape, hidden=8, encoder=encoder, feature_scale=UNIT.reshape(shape), support=support, **settings)


def support_of(noise: PiNoise) -> Support:
    assert noise.support is not None
    return noise.support


def raw_of(noise: PiNoise) -> Tensor:
    raw = noise.generator.raw
    assert isinstance(raw, Tensor)
    return raw


def drift(noise: PiNoise) -> None:
    """Move σ of a global generator, as a step of an optimiser does."""
    with torch.no_grad():
        raw_of(noise).add_(torch.tensor([0.01, 0.0, -0.01, 0.0]))


DRAWS: dict[str, Callable[[PiNoise, Tensor, Tensor], object]] = {
    "sample": lambda noise, x, rows: noise.sample(x, rows=rows),
    "views": lambda noise, x, rows: noise.views(x, rows),
    "forward": lambda noise, x, rows: noise(x),
}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("complete", [True, False], ids=["table", "search"])
def test_noise_is_the_way_to_a_neighbour_plus_that_of_the_distribution(
    settings: dict[str, Any], complete: bool
) -> None:
    support = make_support(make_bank(), complete=complete)
    noise = make_noise(support, **settings)
    plain = make_noise(None, **settings | {"generator": noise.generator})
    rows = support.numbers[5:13]
    x = make_bank()[5:13]
    torch.manual_seed(1)
    draws = noise.draw(x, 3, rows=rows)
    torch.manual_seed(1)
    expected = plain.draw(x, 3)
    moved = support.draw(x, rows=rows, times=3)
    for draw, added, place in zip(draws, expected, moved, strict=True):
        assert torch.equal(draw.epsilon, added.epsilon + (place - x))
        assert torch.equal(draw.scale, added.scale)
        torch.testing.assert_close(x + draw.epsilon, place + added.epsilon)
        assert bool((draw.epsilon[:, UNIT == 0] == 0).all())
    assert bool((moved != x).any())


@pytest.mark.parametrize("generator", ["mlp", "shared", "global"])
@pytest.mark.parametrize("positive", ["softplus", "fixed-entropy"])
def test_gradient_reaches_psi_and_not_the_bank(generator: str, positive: str) -> None:
    bank = make_bank()
    noise = make_noise(make_support(bank), generator=generator, positive=positive)
    parameters = list(noise.parameters())
    gradients = torch.autograd.grad(noise.sample(bank, rows=torch.arange(ROWS)).square().sum(), parameters)
    assert all(bool((gradient != 0).any()) for gradient in gradients)
    if generator == "global":
        assert torch.equal(gradients[0][0, 0] != 0, UNIT > 0)
    assert noise.support is not None
    assert not noise.support.bank.requires_grad


@pytest.mark.parametrize("way", DRAWS)
def test_neighbours_follow_the_learned_scale_every_so_many_draws_in_training(way: str) -> None:
    bank, rows = make_bank(), torch.arange(ROWS)
    noise = make_noise(make_support(bank), generator="global", positive="fixed-entropy")
    support = support_of(noise)
    refreshed = []
    for number in range(2 * REFRESH_EVERY + 2):
        drift(noise)
        before = support.metric.clone()
        DRAWS[way](noise, bank, rows)
        if not torch.equal(support.metric, before):
            refreshed.append(number)
            torch.testing.assert_close(support.metric[UNIT > 0], noise.typical_scale(support_of(noise).bank)[UNIT > 0])
    assert refreshed == [0, REFRESH_EVERY, 2 * REFRESH_EVERY] == [0, 50, 100]
    assert int(support.draws) == 102
    afresh = make_support(bank)
    afresh.refresh(support.metric)
    assert torch.equal(support.neighbours(bank, rows).eligible, afresh.neighbours(bank, rows).eligible)
    assert torch.equal(support.neighbours(bank, rows).positions, afresh.neighbours(bank, rows).positions)


@pytest.mark.parametrize("way", DRAWS)
def test_noise_in_eval_mode_neither_counts_its_draws_nor_finds_other_neighbours(way: str) -> None:
    bank, rows = make_bank(), torch.arange(ROWS)
    noise = make_noise(make_support(bank), generator="global", positive="fixed-entropy").eval()
    support = support_of(noise)
    for _ in range(REFRESH_EVERY + 1):
        drift(noise)
        DRAWS[way](noise, bank, rows)
    assert int(support.draws) == 0
    assert torch.equal(support.metric, torch.ones(4))
    noise.train()
    DRAWS[way](noise, bank, rows)  # the first that counts
    assert int(support.draws) == 1
    torch.testing.assert_close(support.metric[UNIT > 0], noise.typical_scale(support_of(noise).bank)[UNIT > 0])


def test_a_refresh_leaves_the_statistics_and_the_mode_of_the_generator_alone() -> None:
    network = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
    bank = make_bank()
    noise = make_noise(make_support(bank), generator=network)
    noise.sample(bank[:8], rows=torch.arange(8))
    norm = network[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.training
    assert int(norm.state_dict()["num_batches_tracked"]) == 1
    passed = network[0](bank[:8])  # those of the batch, none of the bank
    torch.testing.assert_close(norm.running_mean, 0.1 * passed.mean(dim=0))


def learn(noise: PiNoise, first: int, last: int) -> list[Tensor]:
    """Take steps, each with random numbers of its own, and return the noise of every step."""
    bank = make_bank()
    optimizer = torch.optim.SGD(noise.parameters(), lr=0.05)
    drawn = []
    for step in range(first, last):
        torch.manual_seed(step)
        rows = torch.randperm(ROWS)[:16]
        sample = noise.sample(bank[rows], rows=rows)
        optimizer.zero_grad()
        sample[:, 0].square().mean().backward()
        optimizer.step()
        drawn.append(sample.detach())
    return drawn


@pytest.mark.parametrize("stop", [REFRESH_EVERY - 1, REFRESH_EVERY, REFRESH_EVERY + 7])
@pytest.mark.parametrize("how", ["state dict", "deepcopy", "pickle"])
def test_training_that_goes_on_elsewhere_counts_on_and_ends_in_the_same_bits(
    stop: int, how: str, tmp_path: Path
) -> None:
    last = 2 * REFRESH_EVERY + 5
    whole = make_noise(make_support(make_bank()), generator="global", positive="fixed-entropy")
    learn(whole, 0, stop)
    if how == "state dict":
        torch.save(whole.state_dict(), tmp_path / "noise.pt")
        resumed = make_noise(make_support(make_bank() + 1), generator="global", positive="fixed-entropy")
        resumed.sample(make_bank() + 1, rows=torch.arange(ROWS))  # it has drawn and refreshed before
        resumed.load_state_dict(torch.load(tmp_path / "noise.pt", weights_only=True))
    else:
        resumed = copy.deepcopy(whole) if how == "deepcopy" else pickle.loads(pickle.dumps(whole))
    assert int(support_of(resumed).draws) == stop
    expected, found = learn(whole, stop, last), learn(resumed, stop, last)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    assert int(support_of(resumed).draws) == last
    assert not torch.equal(support_of(resumed).metric, torch.ones(4))


WRONG_ROWS: dict[str, tuple[Tensor, str]] = {
    "shuffled": (
        torch.tensor([0, 2, 1, 3]),
        r"rows gives number 2 to a sample that differs from training row 2: give the samples' row",
    ),
    "of the batch": (torch.arange(4) + 10, r"rows gives number 10 to a sample that differs from training row 10"),
    "too large": (torch.tensor([0, 1, 2, ROWS]), rf"rows has numbers from 0 to {ROWS}: .* has rows 0 to {ROWS - 1}\."),
    "negative": (torch.tensor([0, 1, 2, -1]), r"rows has numbers from -1 to 2: the training data has rows 0 to"),
    "too few": (torch.arange(3), r"of shape \(3,\): give a tensor of integers, one for each of 4 samples"),
    "a column": (torch.arange(4)[:, None], r"of shape \(4, 1\): give a tensor of integers, one for each of 4 samples"),
}


@pytest.mark.parametrize("kind", WRONG_ROWS)
@pytest.mark.parametrize("way", ["sample", "views"])
def test_wrong_row_numbers_are_refused_at_the_first_draw(kind: str, way: str) -> None:
    noise = make_noise(make_support(make_bank()), generator="global")
    rows, message = WRONG_ROWS[kind]
    with pytest.raises(UserError, match=message):
        DRAWS[way](noise, make_bank()[:4], rows)


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_noise_along_data_is_made_of_what_neighbours_in_deviations_differ_by(shape: tuple[int, ...]) -> None:
    data = make_bank(shape) * 3
    noise = PiNoise.along(data, neighbours=5, covariance="diagonal")
    deviation = data.std(dim=0, correction=0)
    support = make_support(data)
    support.refresh(deviation)
    assert noise.support is not None
    assert torch.equal(noise.support.metric, support.metric)
    torch.testing.assert_close(noise.feature_scale, deviation)
    torch.testing.assert_close(noise.initial_scale, prior_scale(support.spread(), deviation))
    torch.testing.assert_close(noise.relative_scale(data)[:, deviation > 0], prior_of_live(noise).expand(ROWS, -1))
    assert noise.weight == PRIOR_WEIGHT == 0.3
    rows = torch.arange(ROWS)
    for training in (False, True):
        noise.train(training)
        if training:
            support.refresh(noise.scale(data)[0].detach())  # one σ for all
        torch.manual_seed(1)
        sample = noise.sample(data, draws=2, rows=rows)
        torch.manual_seed(1)
        added = noise.scale(data) * torch.randn(2, ROWS, *shape)
        torch.testing.assert_close(sample, added + support.draw(data, rows=rows, times=2) - data)


def prior_of_live(noise: PiNoise) -> Tensor:
    return noise.initial_scale[noise.feature_scale > 0]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (torch.arange(12).reshape(6, 2), r"2-dimensional torch\.int64"),
        (torch.zeros(6), r"1-dimensional torch\.float32"),
        ([[0.0], [1.0]], "list"),
    ],
)
def test_data_that_are_no_rows_of_numbers_are_refused(data: Any, found: str) -> None:
    with pytest.raises(UserError, match=rf"data is {found}: give training rows as a tensor of floating-point numbers"):
        PiNoise.along(data)


def test_neighbours_follow_when_asked_to() -> None:
    torch.manual_seed(0)
    noise = PiNoise.along(torch.randn(40, 3)).eval()
    assert noise.support is not None
    with torch.no_grad():
        noise.generator.raw += torch.tensor([0.5, -0.5, 0.0])  # type: ignore[operator]
    noise.follow()
    torch.testing.assert_close(noise.support.metric, noise.typical_scale(support_of(noise).bank))
