"""Noise that moves a sample along the data: the way to a neighbour, plus the noise of the distribution."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.networks import MLPEncoder
from pinoise.noise import PiNoise, Support, mean_log_ratio_squared, prior_scale
from pinoise.noise.module import REFRESH_EVERY

ROWS = 40
UNIT = torch.tensor([0.5, 0.0, 2.0, 1.0])
GENERATORS = ["mlp", "shared", "global", "constant"]
SETTINGS: list[dict[str, Any]] = [
    {"generator": generator, "distribution": distribution, "mean": mean, "positive": positive, "normalize": normalize}
    for generator, (distribution, mean), (positive, normalize) in product(
        GENERATORS,
        product(["gaussian", "uniform"], ["zero", "learned"]),
        [("softplus", None), ("fixed-entropy", 0.7)],
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
    unit = UNIT.reshape(shape)
    return PiNoise(shape, hidden=8, encoder=encoder, feature_scale=unit, initial_scale=0.3, support=support, **settings)


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


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2)])
def test_samples_of_any_rank_move_to_neighbours(shape: tuple[int, ...]) -> None:
    noise = make_noise(make_support(make_bank(shape)), shape=shape, generator="global")
    flat = make_noise(make_support(make_bank()), generator="global")
    rows = torch.arange(6)
    torch.manual_seed(1)
    expected = flat.sample(make_bank()[:6], draws=2, rows=rows)
    torch.manual_seed(1)
    torch.testing.assert_close(noise.sample(make_bank(shape)[:6], draws=2, rows=rows).flatten(2), expected)


def test_a_training_row_is_never_moved_to_itself() -> None:
    bank = make_bank()
    noise = make_noise(make_support(bank), generator="constant", positive="abs")
    with torch.no_grad():
        noise.initial_scale.fill_(1e-6)  # next to nothing but the way to a neighbour
        known = bank + noise.sample(bank, rows=torch.arange(ROWS))
        unknown = bank + noise.sample(bank)
    mutual = make_support(bank).neighbours(bank, torch.arange(ROWS)).eligible.any(dim=1)
    for moved in (known, unknown):
        places = torch.cdist(moved, bank).argmin(dim=1)
        assert bool((places != torch.arange(ROWS))[mutual].all())


@pytest.mark.parametrize("generator", GENERATORS)
def test_without_row_numbers_forward_moves_samples_too(generator: str) -> None:
    bank = make_bank()
    noise = make_noise(make_support(bank), generator=generator)
    assert noise.support is not None
    torch.manual_seed(1)
    moved = noise(bank)
    torch.manual_seed(1)
    assert torch.equal(moved, bank + noise.sample(bank))
    torch.manual_seed(1)
    assert not torch.allclose(moved, make_noise(None, generator=noise.generator)(bank))


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


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_typical_scale_is_the_geometric_mean_over_rows_of_the_support(generator: str) -> None:
    bank = make_bank()
    noise = make_noise(make_support(bank), generator=generator)
    with torch.no_grad():
        for parameter in noise.parameters():
            parameter.normal_()
        scale = noise.scale(bank).double()
    expected = [float(scale[:, j].log().mean().exp()) if UNIT[j] > 0 else 0.0 for j in range(4)]
    typical = noise.typical_scale()
    torch.testing.assert_close(typical, torch.tensor(expected))
    assert not typical.requires_grad


def test_the_typical_scale_of_many_rows_looks_at_some_from_all_over_the_bank() -> None:
    bank = torch.randn(1000, 4)
    support = Support(bank, numbers=torch.arange(1000), rows=1000)
    noise = make_noise(support, generator="mlp")
    before = noise.typical_scale()
    support.bank[900:] += 100.0
    assert not torch.equal(noise.typical_scale(), before)


def test_noise_without_a_support_has_no_typical_scale() -> None:
    with pytest.raises(UserError, match=r"no support: its typical scale depends on samples, ask scale\(x\)"):
        make_noise(None).typical_scale()


def test_neighbours_follow_the_learned_scale_at_intervals_only() -> None:
    bank, rows = make_bank(), torch.arange(ROWS)
    noise = make_noise(make_support(bank), generator="global", positive="fixed-entropy")
    support = noise.support
    assert support is not None
    refreshed = []
    for step in range(2 * REFRESH_EVERY + 2):
        with torch.no_grad():
            noise.generator.raw.add_(torch.tensor([0.01, 0.0, -0.01, 0.0]))  # type: ignore[operator]
        before = support.metric.clone()
        noise.before_step(step)
        if not torch.equal(support.metric, before):
            refreshed.append(step)
            torch.testing.assert_close(support.metric[UNIT > 0], noise.typical_scale()[UNIT > 0])
    assert refreshed == [0, REFRESH_EVERY, 2 * REFRESH_EVERY]
    anew = make_support(bank)
    anew.refresh(support.metric)
    assert torch.equal(support.neighbours(bank, rows).eligible, anew.neighbours(bank, rows).eligible)
    assert torch.equal(support.neighbours(bank, rows).positions, anew.neighbours(bank, rows).positions)


def test_noise_without_a_support_has_nothing_to_follow() -> None:
    make_noise(None).before_step(0)


def test_state_dict_round_trip_restores_the_neighbours() -> None:
    bank, rows = make_bank(), torch.arange(ROWS)
    noise = make_noise(make_support(bank), generator="global", positive="fixed-entropy")
    with torch.no_grad():
        noise.generator.raw.normal_()  # type: ignore[operator]
    noise.before_step(0)
    other = make_noise(make_support(torch.randn(ROWS, 4)), generator="global", positive="fixed-entropy")
    other.sample(bank, rows=rows)
    other.load_state_dict(noise.state_dict())
    torch.manual_seed(1)
    expected = noise.sample(bank, rows=rows)
    torch.manual_seed(1)
    assert torch.equal(other.sample(bank, rows=rows), expected)


def test_double_moves_the_support_along() -> None:
    bank = make_bank()
    noise = make_noise(make_support(bank), generator="global").double()
    noise.before_step(0)
    assert noise.sample(bank.double(), rows=torch.arange(ROWS)).dtype == torch.float64


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_noise_along_data_is_made_of_what_neighbours_in_deviations_differ_by(shape: tuple[int, ...]) -> None:
    data = make_bank(shape) * 3
    noise = PiNoise.along(data, neighbours=5)
    deviation = data.std(dim=0, correction=0)
    support = make_support(data)
    support.refresh(deviation)
    assert noise.support is not None
    assert torch.equal(noise.support.metric, support.metric)
    torch.testing.assert_close(noise.feature_scale, deviation)
    torch.testing.assert_close(noise.initial_scale, prior_scale(support.spread(), deviation))
    torch.testing.assert_close(noise.relative_scale(data)[:, deviation > 0], prior_of_live(noise).expand(ROWS, -1))
    rows = torch.arange(ROWS)
    torch.manual_seed(1)
    sample = noise.sample(data, draws=2, rows=rows)
    torch.manual_seed(1)
    added = noise.scale(data) * torch.randn(2, ROWS, *shape)
    torch.testing.assert_close(sample, added + support.draw(data, rows=rows, times=2) - data)


def prior_of_live(noise: PiNoise) -> Tensor:
    return noise.initial_scale[noise.feature_scale > 0]


def test_noise_along_data_moves_to_as_many_neighbours_as_asked_for_and_owns_its_rows() -> None:
    data = make_bank()
    noise = PiNoise.along(data, neighbours=3)
    assert noise.support is not None
    assert noise.support.k == 3
    before = data.clone()
    noise.load_state_dict(PiNoise.along(torch.randn(ROWS, 4), neighbours=3).state_dict())
    assert torch.equal(data, before)


def test_noise_along_data_keeps_its_entropy_while_it_learns() -> None:
    data = make_bank()
    noise = PiNoise.along(data)
    optimizer = torch.optim.Adam(noise.parameters(), lr=0.1)
    for step in range(20):
        noise.before_step(step)
        loss = (data + noise.sample(data, rows=torch.arange(ROWS)))[:, 0].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scale = noise.relative_scale(data)[:, UNIT > 0].detach()
    torch.testing.assert_close(scale.log().mean(dim=1), prior_of_live(noise).log().mean().expand(ROWS))
    assert float(scale[0, 0]) < 0.8 * float(noise.initial_scale[0])  # the only feature that the loss looks at


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_prior_distance_is_that_of_the_scale_from_its_initial_value(generator: str) -> None:
    noise, x = make_noise(None, generator=generator), torch.randn(6, 4)
    with torch.no_grad():
        for parameter in noise.parameters():
            parameter.normal_()
    relative = noise.relative_scale(x)
    distance = noise.prior_distance(x)
    torch.testing.assert_close(distance, mean_log_ratio_squared(relative, noise.initial_scale))
    if generator == "constant":
        assert float(distance) == pytest.approx(0, abs=1e-10)
    else:
        gradients = torch.autograd.grad(distance, list(noise.parameters()))
        assert all(bool((gradient != 0).any()) for gradient in gradients)
