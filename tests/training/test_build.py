from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.build import build_model, feature_scale
from pinoise.training.build.parts import restore_noise
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.loop import Machine, train
from pinoise.training.objectives import Adversarial, Fixed, Information, Paper, Supported
from pinoise.views import Batch

Problem = Callable[..., Any]
OBJECTIVES = {
    "supported": Supported,
    "paper": Paper,
    "fixed": Fixed,
    "adversarial": Adversarial,
    "information": Information,
}


def some(rows: Any, size: int = 20) -> Batch:
    return Batch(rows[torch.arange(size)], torch.arange(size))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains_what_it_should(problem: Problem, name: str) -> None:
    settings, model, rows = problem(objective=name, training={"epochs": 1})
    assert isinstance(model.objective, OBJECTIVES[name])
    before = {key: p.clone() for key, p in model.named_parameters()}
    train(model, rows, settings.training, machine=Machine(torch.device("cpu")), reporter=Quiet())
    still = {key for key, p in model.named_parameters() if torch.equal(p, before[key])}
    assert still == set()
    assert (model.noise is not None and bool(list(model.noise.parameters()))) == (name != "fixed")


@pytest.mark.parametrize(
    ("changes", "pairing"),
    [
        ({}, "noise-noise"),
        ({"objective": "paper"}, "identity-noise"),
        ({"objective": "adversarial"}, "identity-noise"),
        ({"views": {"augmentations": ["scarf", "dacl"]}}, "sampled"),
        ({"views": {"augmentations": ["neighbours"]}, "objective": "paper"}, "sampled"),
        ({"views": {"noise": "none", "augmentations": ["scarf", "vime"]}}, "sampled"),
        ({"views": {"noise": "vime"}}, "identity-noise"),
        ({"views": {"noise": "neighbours"}}, "identity-noise"),
        ({"views": {"noise": "viewmaker"}, "objective": "adversarial"}, "identity-noise"),
        ({"views": {"pairing": "identity-noise"}}, "identity-noise"),
        ({"views": {"pairing": "noise-noise"}, "objective": "paper"}, "noise-noise"),
        ({"views": {"pairing": "compose", "augmentations": ["gaussian"]}, "noise": {"neighbours": 0}}, "compose"),
    ],
)
def test_the_pairing_follows_from_the_views(problem: Problem, changes: dict[str, Any], pairing: str) -> None:
    _, model, rows = problem(**changes)
    assert model.pairing.name == pairing
    assert torch.isfinite(model(some(rows)).loss)


@pytest.mark.parametrize("method", ["simcl", "clae"])
def test_methods_that_make_their_own_views_need_no_noise(problem: Problem, method: str) -> None:
    _, model, rows = problem(method=method, views={"noise": "none"})
    assert model.pairing.name == "identity"
    assert model.noise is None
    assert torch.isfinite(model(some(rows)).loss)


@pytest.mark.parametrize("noise", ["gaussian", "scarf", "neighbours"])
def test_the_default_objective_has_nothing_to_shape_in_predefined_views(problem: Problem, noise: str) -> None:
    _, model, rows = problem(views={"noise": noise})
    assert isinstance(model.objective, Fixed)
    loss, losses = model(some(rows))
    assert loss == losses.mean()


def slow_neighbours(x: np.ndarray, k: int) -> list[list[int]]:
    """Every row's k nearest by squared distance, less how crowded the other's own surroundings are."""
    distances = [[float(((a - b) ** 2).sum()) for b in x] for a in x]
    crowding = [float(np.mean(sorted(line)[1 : k + 1])) for line in distances]  # sorted(line)[0] is the row itself
    return [
        [j for _, j in sorted((line[j] - crowding[j], j) for j in range(len(x)) if j != i)[:k]]
        for i, line in enumerate(distances)
    ]


def test_the_noise_begins_where_neighbours_differ(digits: np.ndarray) -> None:
    x = digits[:60]
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    settings = parse_settings({"encoder": {"hidden": 8}, "noise": {"neighbours": 4}})
    model = build_model(settings, standardizer, rows)

    live = x.std(axis=0) > 0
    standard = (x - x.mean(axis=0))[:, live] / x.std(axis=0)[live]
    found = slow_neighbours(standard, 4)
    mutual = [(i, j) for i in range(60) for j in found[i] if i in found[j]]
    squares = np.mean([(standard[j] - standard[i]) ** 2 / 2 for i, j in mutual], axis=0)
    spread = np.sqrt(squares)
    middle = np.sort(spread)[(len(spread) - 1) // 2]
    expected = np.clip(spread, middle / math.e**2, middle * math.e**2)
    assert model.noise is not None
    np.testing.assert_allclose(model.noise.initial_scale[torch.from_numpy(live)], expected, rtol=1e-4)
    assert (model.noise.initial_scale[torch.from_numpy(~live)] == 1).all()
    assert isinstance(model.objective, Supported)
    assert torch.equal(model.objective.prior, model.noise.initial_scale)
    # Its entropy, and so its geometric mean, is that of the prior whatever the bounds of the map do to single features.
    sigma = model.noise.relative_scale(rows[torch.arange(3)])[:, torch.from_numpy(live)]
    np.testing.assert_allclose(sigma.log().mean(dim=1).detach(), np.log(expected).mean(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("covariance", ["diagonal", "mixed"])
def test_noise_without_neighbours_stays_where_the_sample_is(problem: Problem, covariance: str) -> None:
    _, model, rows = problem(noise={"neighbours": 0, "initial_scale": 0.01, "covariance": covariance})
    assert not model.noise.moves
    assert (model.noise.support is None) == (covariance == "diagonal")
    assert model.pairing.name == "noise-noise"
    x = rows[torch.arange(50)]
    assert (model.noise.sample(x) / model.noise.feature_scale.clamp_min(1)).square().mean().sqrt() < 0.02


@pytest.mark.parametrize("scaling", ["features", "compressed", "global", "rows"])
def test_noise_is_measured_in_the_deviation_of_what_encoders_see(digits: np.ndarray, scaling: Any) -> None:
    standardizer = Standardizer.fit(digits, scaling=scaling)
    rows = make_rows(digits, standardizer)
    unit = feature_scale(standardizer)
    np.testing.assert_allclose(unit, rows[torch.arange(300)].double().std(dim=0, correction=0), atol=1e-5)
    noise = build_model(parse_settings({"objective": "fixed"}), standardizer, rows).noise
    assert noise is not None
    assert torch.equal(noise.feature_scale, unit)
    torch.testing.assert_close(noise.scale(rows[torch.arange(1)])[0], unit)


@pytest.mark.parametrize("rows_of_bank", [4096, 70])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_noise_is_restored_from_its_tensors(
    problem: Problem, digits: np.ndarray, objective: str, rows_of_bank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.noise.support.SUPPORT_ROWS", rows_of_bank)
    settings, model, rows = problem(objective=objective, noise={"generator": {"hidden": 8}})
    for parameter in model.noise.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.noise.sample(rows[torch.arange(2)])  # neighbours are those under the learned σ
    again = restore_noise(settings, Standardizer.fit(digits), model.method.encoder, model.noise.state_dict())
    x = rows[torch.arange(40)] + 0.1
    drawn = []
    for noise in (model.noise, again):
        torch.manual_seed(3)
        drawn.append(noise.sample(x))
    assert torch.equal(*drawn)
    assert not again.training
