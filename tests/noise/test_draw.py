from __future__ import annotations

import math

import pytest
import torch

from pinoise.noise.draw import FAMILIES, expected_rms, unit_rms

LIVE = torch.tensor([[True, False, True], [True, True, False]])


def test_every_draw_of_unit_rms_has_it_over_its_live_features() -> None:
    noise = torch.randn(4, 5, 2, 3) * torch.logspace(-3, 3, 5)[:, None, None] * LIVE
    unit = unit_rms(noise, LIVE)
    for draw, scaled in zip(noise.flatten(0, 1), unit.flatten(0, 1), strict=True):
        rms = math.sqrt(sum(value**2 for value in draw[LIVE].tolist()) / 4)
        torch.testing.assert_close(scaled, draw / rms)


@pytest.mark.parametrize("distribution", FAMILIES)
@pytest.mark.parametrize("learned", [False, True])
def test_the_expected_rms_is_that_of_many_draws(distribution: str, learned: bool) -> None:
    family = FAMILIES[distribution]
    scale = LIVE * torch.rand(3, 2, 3)
    mean = LIVE * torch.randn(3, 2, 3) if learned else 0.0
    draws = family.noise(mean, scale, family.base(scale.expand(20_000, 3, 2, 3)))
    expected = expected_rms(mean, scale, LIVE, variance=family.variance)
    assert expected.shape == (3, 1, 1)
    measured = (draws.square().sum(dim=(2, 3)).mean(dim=0) / 4).sqrt()
    torch.testing.assert_close(expected.flatten(), measured, rtol=0.02, atol=0)
