"""Columns of several features: one σ each, and moves to what another row has."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pinoise.choices import Covariance, Distribution
from pinoise.errors import UserError
from pinoise.noise import Columns, GlobalGenerator, PiNoise, Support

SPANS = [(1, 4), (5, 7)]  # of 8 features: a number, three values, a number, two values, a number
KINDS = ["diagonal", "differences", "low-rank", "mixed"]


@pytest.fixture
def rows() -> Tensor:
    """Numbers beside two categories, standardised: each category shares one unit."""
    random = torch.Generator().manual_seed(0)
    numbers = torch.randn(40, 3, generator=random)  # so few rows that neighbours differ in their category
    columns = [numbers[:, :1]]
    for values, place in ((3, 1), (2, 2)):
        category = torch.randint(values, (40,), generator=random)
        one_hot = torch.nn.functional.one_hot(category, values).float()
        centred = one_hot - one_hot.mean(dim=0)
        columns += [centred / centred.square().mean(dim=0).sum().sqrt(), numbers[:, place : place + 1]]
    return torch.cat(columns, dim=1)


def is_of_a_row(moved: Tensor, rows: Tensor) -> bool:
    """Whether every category of every sample is one that some row has."""
    return all(
        bool((torch.cdist(moved[:, start:stop], rows[:, start:stop]).amin(dim=1) < 1e-3).all()) for start, stop in SPANS
    )


def raw_of(noise: PiNoise) -> Tensor:
    """Return what a global generator learns."""
    assert isinstance(noise.generator, GlobalGenerator)
    return noise.generator.raw


@pytest.mark.parametrize("covariance", KINDS)
@pytest.mark.parametrize("neighbours", [0, 5])
def test_noise_moves_a_category_to_another_and_never_to_a_fraction(
    rows: Tensor, covariance: Covariance, neighbours: int
) -> None:
    noise = PiNoise.along(rows, neighbours=neighbours, covariance=covariance, columns=Columns(8, SPANS))
    first, second = noise.views(rows, torch.arange(len(rows)))
    for moved in (first, second, rows + noise.sample(rows)):
        assert is_of_a_row(moved, rows)
        assert (moved[:, 1:4] - rows[:, 1:4]).abs().amax(dim=1).gt(0.1).any()  # some of them did move
        assert (moved[:, 0] != rows[:, 0]).float().mean() > 0.9


def test_without_a_support_categories_are_those_of_the_donors(rows: Tensor) -> None:
    noise = PiNoise(8, hidden=8, mean="learned", columns=Columns(8, SPANS), donors=rows[:20])
    assert is_of_a_row(noise(rows), rows)
    with pytest.raises(UserError, match="give a support, or donors"):
        PiNoise(8, columns=Columns(8, SPANS))


@pytest.mark.parametrize(("sigma", "distribution"), [(0.5, "gaussian"), (1.0, "gaussian"), (1.0, "uniform")])
def test_a_category_moves_as_far_as_a_number(rows: Tensor, sigma: float, distribution: Distribution) -> None:
    noise = PiNoise(
        8, generator="constant", distribution=distribution, initial_scale=sigma, columns=Columns(8, SPANS), donors=rows
    )
    squares = noise.sample(rows, draws=1000).square().mean(dim=(0, 1))
    number = sigma**2 * (1 if distribution == "gaussian" else 1 / 3)
    assert float(squares[0]) == pytest.approx(number, rel=0.1)
    for start, stop in SPANS:
        assert float(squares[start:stop].sum()) == pytest.approx(number, rel=0.1)


def test_a_category_has_one_sigma_and_counts_once(rows: Tensor) -> None:
    noise = PiNoise.along(rows, columns=Columns(8, SPANS))
    with torch.no_grad():
        raw_of(noise).copy_(torch.randn(1, 1, 8))
    sigma = noise.relative_scale(rows)[0].detach()
    assert sigma[1:4].unique().numel() == sigma[5:7].unique().numel() == 1
    once = torch.tensor([0, 1, 4, 5, 7])
    assert float(sigma[once].log().sum()) == pytest.approx(float(noise.initial_scale[once].log().sum()), abs=1e-4)
    expected = 0.3 * (sigma[once] / noise.initial_scale[once]).log().square().mean()
    assert float(noise.regularizer(rows).detach()) == pytest.approx(float(expected), rel=1e-4)


def test_the_prior_of_a_category_is_how_often_neighbours_differ(rows: Tensor) -> None:
    noise = PiNoise.along(rows, columns=Columns(8, SPANS))
    assert noise.support is not None
    pairs = noise.support.pairs().positions
    here, there = rows[pairs[:, 0]], rows[pairs[:, 1]]
    for start, stop in SPANS:
        half = (here[:, start:stop] - there[:, start:stop]).square().sum(dim=1).mean() / 2
        assert float(noise.initial_scale[start]) == pytest.approx(float(half.sqrt()), rel=1e-4)


def test_the_gradient_of_a_category_reaches_its_sigma(rows: Tensor) -> None:
    noise = PiNoise.along(rows, columns=Columns(8, SPANS), covariance="diagonal", neighbours=0)
    weight = torch.randn(8, generator=torch.Generator().manual_seed(1))
    (noise(rows)[:, 1:4] * weight[1:4]).sum().backward()
    gradient = raw_of(noise).grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_the_default_noise_learns_the_sigma_of_a_category(rows: Tensor) -> None:
    noise = PiNoise.along(rows, columns=Columns(8, SPANS))
    weight = torch.randn(8, generator=torch.Generator().manual_seed(1))
    first, second = noise.views(rows, torch.arange(len(rows)))
    ((first + second)[:, 1:4] * weight[1:4]).sum().backward()  # which depends on no number
    gradient = raw_of(noise).grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_differences_change_only_what_differs_between_neighbours() -> None:
    bank = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.1], [0.0, 1.0, 5.0], [0.0, 1.0, 5.1]])
    noise = PiNoise(
        3,
        generator="constant",
        initial_scale=1.0,
        covariance="differences",
        support=Support(bank, numbers=torch.arange(4), rows=4, k=1),
        moves=False,
        columns=Columns(3, [(0, 2)]),
    )  # neighbours always have the same category
    moved = noise.sample(bank, draws=50)
    assert (moved[..., :2] == 0).all()
    assert (moved[..., 2] != 0).any()


@pytest.mark.parametrize("spans", [[(0, 9)], [(3, 2)], [(0, 3), (2, 4)]])
def test_columns_that_do_not_fit_the_features_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(UserError, match="does not fit 8 features"):
        Columns(8, spans)
