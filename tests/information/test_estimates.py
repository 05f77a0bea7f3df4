from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pinoise.errors import UserError
from pinoise.information import Estimate, average, estimate_mutual_information, measure_information, mutual_information


def normal_losses(n: int, draws: int, *, seed: int, width: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 5 + width * torch.randn(n, draws, generator=generator, dtype=torch.float64)


def information_of_all_draws(width: float = 2.0) -> float:
    """I(T; E) for ℓ ~ N(5, width²), from its quantiles in place of draws."""
    levels = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    return float(mutual_information(5 + width * torch.special.ndtri(levels)[None]))


def test_average_has_the_textbook_error_without_draws() -> None:
    values = torch.rand(40)
    value, error = average(values)
    assert value == pytest.approx(float(values.mean()))
    assert error == pytest.approx(float(values.std()) / math.sqrt(40))


def test_error_of_the_draws_is_the_textbook_one_for_a_mean_over_draws() -> None:
    """With equal samples only draws vary, and the jackknife of a mean is its standard error."""
    draws = torch.rand(6, dtype=torch.float64)
    left_out = (draws.sum() - draws) / 5
    _, error = average(draws.mean().expand(3), left_out.expand(3, 6))
    assert error == pytest.approx(float(draws.std()) / math.sqrt(6))


@pytest.mark.parametrize("of_draws", [0.0, 1.0])
def test_error_covers_samples_and_draws(of_draws: float) -> None:
    """The deviations from the truth have about the size of the errors, whether or not samples share their draws."""
    ratios = []
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        samples, draws = torch.randn(30, 1, generator=generator), torch.randn(1, 8, generator=generator)
        losses = 5 + samples + of_draws * draws + torch.randn(30, 8, generator=generator)
        estimate = measure_information(torch.full((30,), 5.0), losses).plug_in
        ratios.append(estimate.value / estimate.error)  # the truth is 0
    assert 0.7 < float(torch.tensor(ratios).square().mean().sqrt()) < 1.35


@pytest.mark.parametrize("draws", [2, 4, 8])
def test_correction_for_few_draws_brings_the_estimate_nearer_to_that_of_all_draws(draws: int) -> None:
    truth = information_of_all_draws()
    losses = normal_losses(2000, draws, seed=draws)
    seen = float(mutual_information(losses).mean())
    estimate = estimate_mutual_information(losses)
    assert seen < truth
    assert abs(estimate.value - truth) < 0.5 * abs(seen - truth)


def test_error_of_the_exact_information_covers_its_deviation() -> None:
    truth = information_of_all_draws(width=0.5)
    estimates = [estimate_mutual_information(normal_losses(60, 8, seed=seed, width=0.5)) for seed in range(60)]
    ratios = torch.tensor([(value - truth) / error for value, error in estimates])
    assert 0.5 < float(ratios.square().mean().sqrt()) < 1.3


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-50, 100), min_size=3, max_size=3), min_size=2, max_size=4))
def test_corrected_information_is_not_below_the_uncorrected_one(losses: list[list[float]]) -> None:
    tensor = torch.tensor(losses, dtype=torch.float64)
    estimate = estimate_mutual_information(tensor)
    assert estimate.value >= max(0.0, float(mutual_information(tensor, points=400).mean()) - 1e-6)
    assert estimate.error >= 0


def test_measured_information_is_consistent_and_goes_into_json() -> None:
    clean, losses = torch.rand(20) * 5, torch.rand(20, 6) * 5
    information = measure_information(clean, losses)
    half = math.log(2 * math.pi * math.e) / 2
    assert information.task_entropy.value == pytest.approx(half + float(clean.mean()) / 2)
    assert information.conditional_entropy.value == pytest.approx(half + float(losses.mean()) / 2)
    difference = information.task_entropy.value - information.conditional_entropy.value
    assert information.plug_in.value == pytest.approx(difference)
    assert information.exact == estimate_mutual_information(losses)
    assert (information.draws, information.samples) == (6, 20)
    again = json.loads(json.dumps(information.as_dict(), allow_nan=False))
    assert list(again) == ["task_entropy", "conditional_entropy", "exact", "plug_in", "draws", "samples"]
    assert Estimate(**again["exact"]) == information.exact


@pytest.mark.parametrize(
    ("clean", "losses", "sentence"),
    [
        (torch.zeros(3), torch.zeros(3), "losses have the shape"),
        (torch.zeros(3), torch.zeros(3, 0), "losses have the shape"),
        (torch.zeros(3), torch.zeros(3, 1), "there is 1 draw of the noise"),
        (torch.zeros(4), torch.zeros(3, 2), "without noise have the shape \\(4,\\)"),
        (torch.zeros(3, 1), torch.zeros(3, 2), "give one without noise for every row"),
        (torch.zeros(1), torch.zeros(1, 2), "losses of 1 sample"),
        (torch.zeros(2), torch.tensor([[0, 1], [2, math.inf]]), "the loss of sample 1 under draw 1 is inf"),
        (torch.tensor([0, math.nan]), torch.zeros(2, 2), "without noise are not all finite"),
    ],
)
def test_losses_that_cannot_be_measured_are_refused(clean: Tensor, losses: Tensor, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        measure_information(clean, losses)
