from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from pinoise.errors import UserError
from pinoise.information.entropy import conditional_entropy, gaussian_entropy, marginal_entropy


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


def test_gaussian_entropy_keeps_any_shape() -> None:
    assert gaussian_entropy(torch.zeros(2, 3, 4)).shape == (2, 3, 4)


def test_conditional_entropy_is_the_closed_form_of_the_mean_loss() -> None:
    losses = torch.rand(6, 5, dtype=torch.float64) * 20
    expected = math.log(2 * math.pi * math.e) / 2 + losses.mean(1) / 2
    torch.testing.assert_close(conditional_entropy(losses), expected)


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


def test_marginal_entropy_moves_with_the_losses() -> None:
    losses = torch.rand(4, 3, dtype=torch.float64) * 8
    torch.testing.assert_close(marginal_entropy(losses + 100), marginal_entropy(losses) + 50)


def test_single_precision_comes_back_as_single_precision() -> None:
    losses = torch.rand(8, 4, dtype=torch.float64) * 30
    entropy = marginal_entropy(losses.float())
    assert entropy.dtype == torch.float32
    torch.testing.assert_close(entropy.double(), marginal_entropy(losses), rtol=0, atol=1e-4)


@pytest.mark.parametrize("function", [conditional_entropy, marginal_entropy])
@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 2)])
def test_a_shape_that_is_not_samples_by_draws_is_refused(function: object, shape: tuple[int, ...]) -> None:
    assert callable(function)
    with pytest.raises(UserError, match=r"losses have the shape \(3"):
        function(torch.zeros(shape))


def test_no_samples_have_no_entropies() -> None:
    assert marginal_entropy(torch.zeros(0, 3)).shape == (0,)
