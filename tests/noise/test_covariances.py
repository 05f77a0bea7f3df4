"""Correlated noise: its covariance against a plain estimate, its density against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from pinoise.errors import UserError
from pinoise.noise import PiNoise, Support
from pinoise.noise.draw import Factors, LowRank, draw_low_rank, low_rank_factors

ROWS = 200


def make_data(d: int = 5, *, seed: int = 0) -> Tensor:
    """Return rows around a curve, so that neighbours differ along it; the last feature is constant."""
    random = np.random.default_rng(seed)
    t = random.uniform(0, 6, size=(ROWS, 1))
    x = np.hstack([np.sin(t), 2 * np.cos(t), t, t**2 / 6]) + 0.4 * random.normal(size=(ROWS, 4))
    return torch.from_numpy(np.hstack([x, np.ones((ROWS, d - 4))])).float()


def slow_covariance(support: Support) -> np.ndarray:
    """½ · mean of Δ Δᵀ over pairs of mutual neighbours, one row at a time."""
    found = support.neighbours(support.bank, torch.arange(len(support.bank)))
    products = []
    for row, (places, eligible) in enumerate(zip(found.positions, found.eligible, strict=True)):
        for place in places[eligible].tolist():
            difference = (support.bank[row] - support.bank[place]).double().flatten().numpy()
            products.append(np.outer(difference, difference) / 2)
    return np.asarray(np.mean(products, axis=0))


def sample_covariance(noise: Tensor) -> np.ndarray:
    flat = noise.detach().flatten(1).double().numpy()
    return np.asarray(flat.T @ flat / len(flat))


def test_transplanted_differences_have_the_covariance_of_neighbour_differences() -> None:
    support = Support.of(make_data())
    expected = slow_covariance(support)
    drawn = support.differences(support.draw_pairs(60_000), generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(sample_covariance(drawn), expected, atol=0.02 * expected.max())
    assert not drawn[:, 4].any()  # a constant feature


@pytest.mark.parametrize(("covariance", "amplitude", "factor"), [("differences", None, 2.0), ("low-rank", 0.5, 0.5)])
def test_correlated_noise_alone_has_that_covariance_times_the_amplitude(
    covariance: str, amplitude: float | None, factor: float
) -> None:
    data = make_data()
    noise = PiNoise.along(data, neighbours=0, covariance=covariance, amplitude=amplitude)  # type: ignore[arg-type]
    assert noise.support is not None
    expected = factor**2 * slow_covariance(noise.support)
    drawn = noise.eval().sample(data[:1].expand(60_000, -1), generator=torch.Generator().manual_seed(0))
    # A quarter of the pairs estimates the low-rank one.
    close = 0.04 if covariance == "differences" else 0.25
    np.testing.assert_allclose(sample_covariance(drawn), expected, atol=close * expected.max())


def test_a_larger_sigma_stretches_transplanted_differences() -> None:
    data = make_data()
    noise = PiNoise.along(data, neighbours=0, covariance="differences").eval()
    before = noise.sample(data, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        noise.initial_scale[0] *= 1.5
    ratio = noise.scale(data)[0, :4].detach() / torch.tensor(1.0)
    after = noise.sample(data, generator=torch.Generator().manual_seed(0))
    noise.initial_scale[0] /= 1.5
    ratio /= noise.scale(data)[0, :4].detach()
    torch.testing.assert_close(after[:, :4], before[:, :4] * ratio)


def test_mixed_noise_draws_one_of_two_noises_for_every_sample() -> None:
    data, rows = make_data(), torch.arange(ROWS)
    noise = PiNoise.along(data, amplitude=1e-4).eval()  # hardly any noise beside the move
    assert noise.support is not None
    moved = (data + noise.sample(data, draws=200, rows=rows, generator=torch.Generator().manual_seed(0)))[..., :4]
    nearest = torch.cdist(moved, noise.support.bank[:, :4]).amin(dim=2)
    away = (moved - data[:, :4]).norm(dim=2)
    stays = away < 1e-2
    assert abs(float(stays.float().mean()) - 0.5) < 0.02
    assert bool((nearest < 1e-2).all())  # the others are at a neighbour
    assert bool((stays.float().mean(dim=0) > 0.3).all())  # every sample does both


def test_gradients_reach_sigma_through_every_covariance() -> None:
    data = make_data()
    for covariance in ("diagonal", "differences", "low-rank", "mixed"):
        noise = PiNoise.along(data, covariance=covariance)
        noise.sample(data).square().sum().backward()
        gradient = next(noise.generator.parameters()).grad
        assert gradient is not None
        assert bool(gradient.flatten()[:4].abs().gt(0).all()), covariance


def test_low_rank_factors_are_exact_when_the_rank_suffices() -> None:
    differences = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) @ torch.randn(3, 6)
    directions, rest = low_rank_factors(differences, rank=3)
    correlations = differences / differences.square().mean(dim=0).sqrt()
    expected = correlations.T @ correlations / 50
    torch.testing.assert_close(directions @ directions.T + rest.diag(), expected, atol=1e-4, rtol=1e-4)
    drawn = draw_low_rank(Factors(directions, rest), 50_000, generator=torch.Generator().manual_seed(1))
    np.testing.assert_allclose(sample_covariance(drawn), expected.numpy(), atol=0.03)


def test_the_density_of_low_rank_noise_is_that_of_its_gaussian() -> None:
    data = make_data()
    noise = PiNoise.along(data, neighbours=0, covariance="low-rank").double().eval()
    x = data[:3].double()
    epsilon = noise.sample(x, generator=torch.Generator().manual_seed(0)).detach()
    assert isinstance(noise.drawing, LowRank)
    directions, rest = noise.drawing.factors(noise.support)
    scale = noise.scale(x)[0, :4].detach()
    matrix = scale[:, None] * (directions @ directions.T + rest.clamp_min(1e-6).diag())[:4, :4] * scale
    gaussian = stats.multivariate_normal(np.zeros(4), matrix.numpy())
    law = noise.law(x)
    np.testing.assert_allclose(
        law.log_prob(epsilon[:, :4]).detach(), gaussian.logpdf(epsilon[:, :4]).tolist(), rtol=1e-6
    )
    np.testing.assert_allclose(law.entropy().detach(), float(gaussian.entropy()), rtol=1e-6)


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_the_density_of_independent_noise_is_the_product_of_scipys(distribution: str) -> None:
    noise = PiNoise(3, distribution=distribution, generator="constant", initial_scale=0.5)  # type: ignore[arg-type]
    x = torch.zeros(2, 3)
    epsilon = torch.tensor([[0.1, -0.3, 0.2], [0.4, 0.0, 0.6]])
    one = stats.norm(0, 0.5) if distribution == "gaussian" else stats.uniform(-0.5, 1.0)
    law = noise.law(x)
    np.testing.assert_allclose(law.log_prob(epsilon.double()), one.logpdf(epsilon.numpy()).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(law.entropy(), 3 * one.entropy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariance": "full"}, r"unknown covariance 'full'"),
        ({"covariance": "differences"}, r"that of neighbours in the data: give a support"),
        ({"amplitude": 2.0}, r"a multiple of how much neighbours differ, and this noise looks at none"),
        ({"amplitude": -1.0}, r"amplitude is -1.0: it must be a positive number"),
        ({"amplitude": 2.0, "initial_scale": 1.0}, r"both set σ; leave one out"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PiNoise(3, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{}, {"covariance": "differences"}, {"covariance": "low-rank", "neighbours": 5}])
def test_noise_without_a_density_says_so(arguments: dict[str, object]) -> None:
    noise = PiNoise.along(make_data(), **arguments)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="has no density: choose"):
        noise.law(make_data()[:2])


def test_rows_without_mutual_neighbours_still_differ() -> None:
    support = Support(torch.zeros(3, 2), numbers=torch.arange(3), rows=3, k=1)  # all equal
    assert not support.differences(support.draw_pairs(4)).any()
