"""Known nuisance, and whether learned noise finds it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.run import TrainedModel, fit

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "nuisance.py"))
nuisance_auc, nuisance_problem = BENCHMARK["nuisance_auc"], BENCHMARK["nuisance_problem"]

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 128, "out_features": 64},
    "noise": {"generator": {"hidden": 128}},
    "training": {"epochs": 100, "device": "cpu", "information_draws": 0},
}


def test_the_problem_is_what_it_says() -> None:
    problem = nuisance_problem(rows=2000, seed=3)
    assert problem.x.shape == (2000, 89)
    assert problem.nuisance.sum() == 40
    assert (np.ptp(problem.x, axis=0) > 0).tolist() == problem.live.tolist()
    assert not (problem.nuisance & ~problem.live).any()
    signal = problem.x[:, problem.live & ~problem.nuisance]
    noise = problem.x[:, problem.nuisance]
    informed, blind = (
        LogisticRegression(max_iter=500).fit(part[:1000], problem.y[:1000]).score(part[1000:], problem.y[1000:])
        for part in (StandardScaler().fit_transform(signal), StandardScaler().fit_transform(noise))
    )
    assert informed > 0.8
    assert blind < 0.25  # of six classes
    # The hidden state has five dimensions, so five directions hold nearly all that signal features share.
    values = np.linalg.eigvalsh(np.corrcoef(signal.T))[::-1]
    assert values[:5].sum() > 0.8 * values.sum()
    scale = noise.std(axis=0) / signal.std()
    assert 0.9 < scale.min() < scale.max() < 3.3


def test_the_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    problem = nuisance_problem(rows=20)
    sigma = np.random.default_rng(0).random(89)
    there = [sigma[j] > sigma[i] for j in np.flatnonzero(problem.nuisance) for i in np.flatnonzero(_signal(problem))]
    assert nuisance_auc(sigma, problem) == pytest.approx(np.mean(there))


def _signal(problem: Any) -> Any:
    return problem.live & ~problem.nuisance


def _fitted(seed: int, settings: dict[str, Any]) -> tuple[float, TrainedModel]:
    problem = nuisance_problem(seed=seed)
    standardizer = Standardizer.fit(problem.x)
    rows = make_rows(problem.x, standardizer)
    found = fit(
        parse_settings(merge(merge(SMALL, settings), {"training": {"seed": seed}})),
        standardizer,
        rows,
        reporter=Quiet(),
    )
    assert found.model.noise is not None
    with torch.no_grad():
        sigma = found.model.noise.relative_scale(rows[torch.arange(200)]).mean(dim=0)
    return nuisance_auc(sigma.numpy(), problem), found


@pytest.mark.slow
def test_the_default_puts_its_noise_on_what_does_not_matter() -> None:
    auc, found = _fitted(0, {})
    assert auc >= 0.97
    assert found.flags == []


@pytest.mark.slow
def test_learning_alone_finds_the_nuisance_from_a_flat_start_without_the_prior() -> None:
    settings = {"objective": {"name": "supported", "weight": 0.0}, "noise": {"initial_scale": 0.5}}
    auc, found = _fitted(1, settings)
    assert found.model.noise is not None
    assert float(found.model.noise.initial_scale.std()) == 0  # nothing at the start says where
    assert auc >= 0.9


@pytest.mark.slow
def test_the_papers_objective_collapses_and_finds_nothing() -> None:
    auc, found = _fitted(0, {"objective": "paper", "method": {"temperature": 0.1}})
    assert [flag.name for flag in found.flags][:1] == ["shrink"]
    assert auc < 0.9
