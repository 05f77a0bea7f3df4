"""Fits in memory, and what is said of those that go wrong: every flag by a real run that deserves it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.run import TrainedModel, fit

DATA = {"digits": load_digits().data[:500], "wine": load_wine().data, "breast_cancer": load_breast_cancer().data}
SMALL: dict[str, Any] = {
    "encoder": {"hidden": 64, "out_features": 16},
    "head": {"hidden": 32, "out_features": 16},
    "noise": {"generator": {"hidden": 64}},
    "training": {"epochs": 30, "batch_size": 128, "device": "cpu", "information_draws": 0},
}


def fitted(data: str, **changes: Any) -> TrainedModel:
    settings = parse_settings(merge(SMALL, changes))
    standardizer = Standardizer.fit(DATA[data])
    return fit(settings, standardizer, make_rows(DATA[data], standardizer), reporter=Quiet())


def names(found: TrainedModel) -> list[str]:
    return [flag.name for flag in found.flags]


@pytest.mark.parametrize("data", DATA)
def test_the_default_raises_no_flag(data: str) -> None:
    found = fitted(data)
    assert found.flags == []
    last = found.history[-1].metrics
    assert last["contrast"] < found.history[0].metrics["contrast"]
    assert last["sigma_median"] > 0.2
    assert last["participation"] > 0.8


@pytest.mark.parametrize("data", ["digits", "wine"])
def test_the_papers_objective_shrinks_the_noise(data: str) -> None:
    found = fitted(data, objective="paper", method={"temperature": 0.1}, training={"epochs": 30, "learning_rate": 3e-3})
    assert names(found) == ["shrink"]
    assert found.history[0].metrics["sigma_median"] > 0.8
    assert found.history[-1].metrics["sigma_median"] < 0.01


def test_noise_that_may_not_shrink_parks_on_few_features() -> None:
    found = fitted(
        "digits",
        objective="paper",
        noise={"normalize": 1.0},
        method={"temperature": 0.1},
        training={"learning_rate": 3e-3},
    )
    assert names(found) == ["shrink", "parking"]  # most features have none at all
    assert found.history[-1].metrics["participation"] < 0.15
    assert found.history[-1].metrics["sigma_mean"] > 0.2


def test_noise_on_its_way_there_leaves_a_channel_clean() -> None:
    found = fitted(
        "wine",
        objective="paper",
        noise={"normalize": 1.0, "initial_scale": 3.0},
        method={"temperature": 0.1},
        training={"epochs": 10, "learning_rate": 1e-2},
    )
    assert names(found) == ["clean-channel"]
    assert found.history[-1].metrics["sigma_median"] > 0.3


def test_an_encoder_with_one_unit_collapses() -> None:
    found = fitted("digits", encoder={"hidden": 1}, training={"epochs": 10, "learning_rate": 1e-2})
    assert "embedding-collapse" in names(found)
    with torch.no_grad():
        z = found.model.method.encoder(torch.randn(50, 64)).double().numpy()
    shares = np.linalg.svd(z - z.mean(axis=0), compute_uv=False)
    assert (shares[1:] < 1e-5 * max(shares[0], 1)).all()  # a line, or a point


@pytest.mark.parametrize("data", ["digits", "wine"])
def test_noise_that_drowns_everything_leaves_the_loss_of_guessing(data: str) -> None:
    found = fitted(data, objective="fixed", noise={"initial_scale": 100.0})
    assert names(found) == ["loss-floor"]
    assert found.history[-1].metrics["contrast"] == pytest.approx(math.log(2 * 128 - 1), rel=0.01)


def test_views_that_hardly_differ_leave_no_loss() -> None:
    found = fitted(
        "wine",
        views={"noise": {"name": "gaussian", "sigma": 1e-3}},
        method={"temperature": 0.01},
        training={"learning_rate": 3e-3, "batch_size": 32},
    )
    assert names(found) == ["loss-zero"]


@pytest.mark.parametrize("objective", ["supported", "paper"])
def test_a_last_step_that_breaks_the_embedding_is_not_finite(objective: str) -> None:
    found = fitted("wine", objective=objective, training={"epochs": 1, "batch_size": 178, "learning_rate": 1e20})
    assert names(found) == ["non-finite"]
    assert math.isfinite(found.history[-1].loss)


def test_a_fit_leaves_the_callers_random_numbers_alone_and_follows_its_seed() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    ended = [fitted("wine", training={"epochs": 2, "seed": seed}).model for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    first, again, other = ([*model.state_dict().values()] for model in ended)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert not ended[0].training
