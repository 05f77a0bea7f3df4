from __future__ import annotations

import math

import pytest
import torch

from pinoise.noise.positive import POSITIVE_MAPS

NAMES = ["softplus", "abs"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [1e-6, 0.01, 0.3, 1.0, 5.0, 80.0, 1e4])
def test_the_inverse_undoes_the_map(name: str, value: float) -> None:
    point = torch.tensor(POSITIVE_MAPS[name].inverse(value), dtype=torch.float64)
    assert float(POSITIVE_MAPS[name].forward(point)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_map_is_never_negative(name: str) -> None:
    assert bool((POSITIVE_MAPS[name].forward(torch.linspace(-200, 200, 4001)) >= 0).all())


def test_softplus_agrees_with_its_definition() -> None:
    points = torch.linspace(-10, 10, 41, dtype=torch.float64)
    expected = [math.log1p(math.exp(float(point))) for point in points]
    torch.testing.assert_close(
        POSITIVE_MAPS["softplus"].forward(points), torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0
    )


def test_softplus_keeps_a_gradient_where_the_scale_is_small() -> None:
    point = torch.tensor(POSITIVE_MAPS["softplus"].inverse(1e-4), requires_grad=True)
    (slope,) = torch.autograd.grad(POSITIVE_MAPS["softplus"].forward(point), point)
    # The derivative of softplus is the logistic function, which at small σ is σ itself.
    assert float(slope) == pytest.approx(1e-4, rel=1e-3)
