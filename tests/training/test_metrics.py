from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.information import measure_information
from pinoise.training.metrics import (
    COSTLY_METRICS,
    METRICS,
    NOISE_METRICS,
    information_in_views,
    is_costly_epoch,
    measure,
    model_health,
    probe_batch,
)

Problem = Callable[..., Any]


class Numbers:
    """Rows that are their own numbers, of which only those asked for are made."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        assert len(rows) <= 256
        return rows[:, None].float()


@pytest.mark.parametrize("rows", [2, 7, 256, 257, 1000, 10_000_019])
def test_the_probe_is_from_all_over_a_sorted_file_and_knows_its_rows(rows: int) -> None:
    x, numbers = probe_batch(Numbers(rows))[:2]
    assert x[:, 0].tolist() == [float(number) for number in numbers]
    assert len(numbers) == min(256, rows)
    gaps = numbers.diff()
    assert numbers[0] == 0
    assert 1 <= int(gaps.min()) <= int(gaps.max()) <= math.ceil(rows / len(numbers))
    assert rows - int(numbers[-1]) <= math.ceil(rows / len(numbers))


@pytest.mark.parametrize("epochs", [1, 2, 9, 10, 11, 20, 25, 99, 100, 1000])
def test_costly_epochs_are_about_ten_and_the_last_is_one(epochs: int) -> None:
    costly = [epoch for epoch in range(1, epochs + 1) if is_costly_epoch(epoch, epochs, steps=50)]
    assert costly[-1] == epochs
    assert min(epochs, 6) <= len(costly) <= 11
    assert len({b - a for a, b in pairwise(costly[:-1])}) <= 1  # evenly


def measured(model: Any, rows: Any, *, costly: bool = True, draws: int = 3) -> dict[str, float]:
    found = measure(model, probe_batch(rows), costly=costly, draws=draws)
    assert tuple(found) == METRICS
    return found


def finite(found: dict[str, float]) -> set[str]:
    return {name for name, value in found.items() if math.isfinite(value)}


def test_what_is_not_asked_for_or_not_there_is_nan(problem: Problem) -> None:
    _, learned, rows = problem()
    assert finite(measured(learned, rows)) == {*NOISE_METRICS, *COSTLY_METRICS}  # the loop fills in the contrast
    assert finite(measured(learned, rows, costly=False)) == set(NOISE_METRICS)
    assert finite(measured(learned, rows, draws=0)) == {*NOISE_METRICS, "effective_rank", "spread"}
    _, predefined, rows = problem(views={"noise": "scarf"})
    assert finite(measured(predefined, rows)) == set(COSTLY_METRICS)
    assert finite(measured(predefined, rows, costly=False)) == set()


def test_the_size_of_noise_is_over_live_features_in_their_deviations(problem: Problem, digits: np.ndarray) -> None:
    _, model, rows = problem(noise={"initial_scale": 0.5}, objective="fixed")
    found = measured(model, rows)
    assert (digits.std(axis=0) == 0).any()  # some pixels are always blank, and must not pull the mean down
    assert found["sigma_mean"] == pytest.approx(0.5)
    assert found["sigma_median"] == pytest.approx(0.5)
    assert found["participation"] == found["cleanest"] == pytest.approx(1)


def test_the_noise_of_the_default_is_measured_as_numpy_does(problem: Problem) -> None:
    _, model, rows = problem()
    model.noise.generator.raw.data += 0.3 * torch.randn(1, 1, 64)
    sigma = model.noise.relative_scale(rows[torch.arange(1)]).detach().double().numpy()[0]
    sigma = sigma[model.noise.feature_scale.numpy() > 0]
    found = measured(model, rows)
    assert found["sigma_mean"] == pytest.approx(sigma.mean(), rel=1e-5)
    assert found["participation"] == pytest.approx(sigma.sum() ** 2 / (len(sigma) * (sigma**2).sum()), rel=1e-5)
    assert found["cleanest"] == pytest.approx(sigma.min() / np.median(sigma), rel=0.05)  # torch's median is the lower


def test_the_embedding_that_is_measured_is_the_encoders(problem: Problem) -> None:
    _, model, rows = problem()
    with torch.no_grad():
        z = model.method.encoder(probe_batch(rows).x).double().numpy()
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    share = np.linalg.svd(unit - unit.mean(axis=0), compute_uv=False)
    share = share[share > 0] / share.sum()
    found = measured(model, rows)
    assert found["effective_rank"] == pytest.approx(math.exp(-(share * np.log(share)).sum()), rel=1e-3)
    assert found["spread"] == pytest.approx(math.sqrt(16) * unit.std(axis=0).mean(), rel=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective": "paper", "noise": {"generator": "shared"}},
        {"views": {"noise": "dacl"}},
        {"method": "simcl", "views": {"noise": "none"}},
        {"method": "clae"},
    ],
)
def test_information_is_that_of_the_losses_under_fresh_views(problem: Problem, changes: dict[str, Any]) -> None:
    _, model, rows = problem(**changes)
    batch = probe_batch(rows)
    information = information_in_views(model, batch, draws=4)
    torch.manual_seed(0)
    model.eval()
    with torch.no_grad():
        losses = torch.stack([model.method(model.pairing(batch)) for _ in range(4)], dim=1)
        alone = [batch] if model.pairing.name == "identity" else [batch, batch]
        clean = model.method(alone)
    for mine, theirs in zip(information, measure_information(clean, losses), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-6)
    assert (information.draws, information.samples) == (4, 256)

    found = measured(model, rows, draws=4)
    assert found["information"] == information.exact.value
    assert found["plug_in"] == information.plug_in.value
    assert found["task_entropy"] - found["conditional_entropy"] == pytest.approx(found["plug_in"], abs=1e-6)


def test_measuring_keeps_random_numbers_gradients_and_repeats_itself(problem: Problem) -> None:
    _, model, rows = problem()
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, second = measured(model, rows), measured(model, rows)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_equal(first, second)
    assert all(p.grad is None for p in model.parameters())


def test_health_is_measured_on_learned_noise_alone(problem: Problem) -> None:
    def names(contrast: float = 3.0, **changes: Any) -> list[str]:
        _, model, rows = problem(**changes, encoder={"hidden": 512})
        return [flag.name for flag in model_health(model, rows, contrast=contrast, batch_size=64)]

    tiny = {"initial_scale": 1e-3}
    assert names() == []
    assert names(noise=tiny) == ["shrink"]
    assert names(noise=tiny, objective="paper") == ["shrink"]
    assert names(noise=tiny, objective="fixed") == []
    assert names(views={"noise": "scarf"}) == []
    floor = math.log(127)
    assert names(0.995 * floor) == ["loss-floor"]
    assert names(0.98 * floor) == []
    assert names(0.98 * floor, method="clae") == []  # it has two comparisons, and twice the loss of guessing
    assert names(1.995 * floor, method="clae") == ["loss-floor"]
    assert names(1e-4) == ["loss-zero"]
    assert names(math.nan) == ["non-finite"]
