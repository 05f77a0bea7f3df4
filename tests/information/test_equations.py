from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor

from pinoise.errors import UserError
from pinoise.information import equations
from pinoise.information.equations import conditional_entropy, gaussian_entropy, mutual_information, sufficient_points


def marginal_entropy(losses: Tensor) -> Tensor:
    """Entropy of the mixture, from what is to be tested."""
    return conditional_entropy(losses) + mutual_information(losses)


def slow_entropy(losses: list[float]) -> float:
    """Entropy of the mixture, by adaptive quadrature over α between multiples of every component's scale."""
    scales = [math.exp(loss / 2) for loss in losses]

    def integrand(alpha: float) -> float:
        density = sum(math.exp(-((alpha / s) ** 2) / 2) / s for s in scales) / (len(scales) * math.sqrt(2 * math.pi))
        return -density * math.log(density) if density else 0.0

    edges = sorted({0.0, *(s * factor for s in scales for factor in (0.1, 1.0, 3.0, 8.0))})
    return 2 * sum(quad(integrand, a, b, epsabs=1e-11, limit=200)[0] for a, b in pairwise(edges))


@pytest.mark.parametrize("loss", [-5.0, 0.0, 0.7, 30.0])
def test_gaussian_entropy_is_that_of_scipy(loss: float) -> None:
    entropy = gaussian_entropy(torch.tensor(loss, dtype=torch.float64))
    assert float(entropy) == pytest.approx(float(norm(scale=math.exp(loss / 2)).entropy()), abs=1e-12)


@pytest.mark.parametrize(
    "losses",
    [
        [0.0, 1.0],
        [3.0, 3.0, 3.5],
        [0.0, 10.0],
        [0.0, 30.0],
        [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0],
        [-12.0, 0.5, 0.6, 9.0],
        [0.0, 0.0, 0.0, 30.0],
        [0.0, 60.0],
    ],
)
def test_marginal_entropy_is_that_of_adaptive_quadrature(losses: list[float]) -> None:
    entropy = marginal_entropy(torch.tensor([losses], dtype=torch.float64))
    assert float(entropy) == pytest.approx(slow_entropy(losses), abs=1e-6)


@pytest.mark.parametrize("loss", [-40.0, 0.0, 7.3, 200.0])
@pytest.mark.parametrize("draws", [1, 2, 7])
def test_marginal_entropy_of_equal_losses_is_the_closed_form(loss: float, draws: int) -> None:
    losses = torch.full((3, draws), loss, dtype=torch.float64)
    torch.testing.assert_close(marginal_entropy(losses), gaussian_entropy(losses[:, 0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("function", [conditional_entropy, mutual_information])
@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 2)])
def test_a_shape_that_is_not_samples_by_draws_is_refused(function: object, shape: tuple[int, ...]) -> None:
    assert callable(function)
    with pytest.raises(UserError, match=r"losses have the shape \(3"):
        function(torch.zeros(shape))


def test_exact_information_of_many_draws_is_that_of_continuous_noise() -> None:
    """Compare with h(α) − h(α|ℓ) for ℓ uniform on (0, 2), integrated over α and ℓ by scipy."""

    def density(alpha: float) -> float:
        return float(quad(lambda ell: norm.pdf(alpha, scale=math.exp(ell / 2)) / 2, 0, 2)[0])

    entropy = 2 * quad(lambda alpha: -density(alpha) * math.log(density(alpha)), 0, 20, epsabs=1e-8)[0]
    expected = entropy - (math.log(2 * math.pi * math.e) / 2 + 0.5)
    midpoints = (torch.arange(400, dtype=torch.float64) + 0.5) / 200
    assert float(mutual_information(midpoints[None])) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_that_does_not_matter_has_no_information(dtype: torch.dtype) -> None:
    losses = (torch.rand(9, 1, dtype=dtype) * 50).expand(9, 6)
    assert float(mutual_information(losses).abs().max()) < 1e-15


@settings(deadline=None)
@given(
    st.lists(
        st.floats(-1e6, 1e6) | st.floats(-10, 30) | st.sampled_from([0.0, 1e-9, 40.0, 1e300]), min_size=1, max_size=8
    )
)
def test_exact_information_is_between_0_and_the_logarithm_of_the_draws(losses: list[float]) -> None:
    information = float(mutual_information(torch.tensor([losses], dtype=torch.float64), points=256))
    assert -1e-12 <= information <= math.log(len(losses)) + 1e-3


@settings(deadline=None)
@given(st.permutations(range(5)), st.floats(-100, 100))
def test_order_and_level_of_the_draws_do_not_matter(order: list[int], level: float) -> None:
    losses = torch.tensor([[0.0, 3.0, 3.5, 11.0, 29.0]], dtype=torch.float64)
    expected = float(mutual_information(losses))
    assert float(mutual_information(losses[:, order] + level)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("spread", [1.0, 10.0, 30.0])
@pytest.mark.parametrize("points", [128, 256])
def test_gradient_agrees_with_finite_differences(spread: float, points: int) -> None:
    losses = (torch.rand(3, 4, dtype=torch.float64) * spread).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: mutual_information(x, points=points), (losses,))


def test_single_precision_agrees_with_double() -> None:
    losses = torch.rand(8, 4, dtype=torch.float64) * 30
    information = mutual_information(losses.float())
    assert information.dtype == torch.float32
    torch.testing.assert_close(information.double(), mutual_information(losses), rtol=0, atol=1e-6)


def test_many_rows_are_computed_in_chunks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = torch.rand(50, 3, dtype=torch.float64) * 10
    whole = mutual_information(losses)
    sizes: list[int] = []
    one_chunk = equations._divergence

    def watched(chunk: Tensor, points: int) -> Tensor:
        sizes.append(len(chunk))
        return one_chunk(chunk, points)

    monkeypatch.setattr(equations, "_divergence", watched)
    monkeypatch.setattr(equations, "_MAX_ELEMENTS", 7 * 3 * equations.POINTS)
    torch.testing.assert_close(mutual_information(losses), whole)
    assert max(sizes) == 7


def test_a_wide_gap_needs_no_more_points_than_one_of_40() -> None:
    far = torch.tensor([[0.0, 1e6], [0.0, 1e30]], dtype=torch.float64)
    assert sufficient_points(far) == sufficient_points(torch.tensor([[0.0, 40.0]]))
    torch.testing.assert_close(mutual_information(far), torch.full((2,), math.log(2), dtype=torch.float64))


def test_sufficient_points_are_enough_where_the_default_is_not() -> None:
    losses = torch.arange(12, dtype=torch.float64)[None] * 39  # nearly apart, over 429
    truth = mutual_information(losses, points=20_000)
    assert float(truth) == pytest.approx(math.log(12), abs=1e-5)
    assert abs(float(mutual_information(losses) - truth)) > 1e-3
    assert abs(float(mutual_information(losses, points=sufficient_points(losses)) - truth)) < 1e-6


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_only_the_row_that_is_not_finite_becomes_nan(bad: float) -> None:
    divergence = mutual_information(torch.tensor([[0.0, 1.0], [bad, 1.0]]))
    assert divergence.isnan().tolist() == [False, True]


def test_too_few_points_are_refused() -> None:
    with pytest.raises(UserError, match="points is 3: the quadrature needs at least 16"):
        mutual_information(torch.zeros(2, 2), points=3)


def test_whole_numbers_are_refused() -> None:
    with pytest.raises(UserError, match=r"losses are of type torch\.int64: give floating-point numbers"):
        mutual_information(torch.zeros(2, 2, dtype=torch.int64))
