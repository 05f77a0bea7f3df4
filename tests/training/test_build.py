from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from sklearn.neighbors import NearestNeighbors

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import CLAE, SimCL, SimCLR
from pinoise.noise import ConstantGenerator, GlobalGenerator, MLPGenerator, SharedGenerator, Support
from pinoise.training.build import build_model, feature_scale, restore_noise
from pinoise.training.callbacks import Quiet
from pinoise.training.config import Settings, parse_settings
from pinoise.training.loop import train
from pinoise.training.objectives import Adversarial, Fixed, Information, Paper, Supported
from pinoise.views import Batch, Neighbour, PiNoiseView, ScarfSwap, Viewmaker

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


@pytest.mark.parametrize(("name", "kind"), [("simclr", SimCLR), ("simcl", SimCL), ("clae", CLAE)])
@pytest.mark.parametrize("noise", [{"mean": "zero"}, {"mean": "learned"}, {"distribution": "uniform"}])
@pytest.mark.parametrize("generator", ["global", "mlp", "shared"])
def test_pinda_composes_with_every_method(
    problem: Problem, name: str, kind: type, noise: dict[str, str], generator: str
) -> None:
    settings, model, rows = problem(
        method=name,
        noise={**noise, "generator": generator},
        training={"epochs": 3, "learning_rate": 5e-3, "information_draws": 0},
    )
    assert isinstance(model.method, kind)
    assert isinstance(model.pairing.noise, PiNoiseView)
    before = [p.clone() for p in model.noise.parameters()]
    history = train(model, rows, settings.training, fabric=Fabric(accelerator="cpu", devices=1), reporter=Quiet())
    assert history[-1].loss < history[0].loss
    assert all(not torch.equal(a, b) for a, b in zip(before, model.noise.parameters(), strict=True))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_trains_what_it_should(problem: Problem, name: str) -> None:
    settings, model, rows = problem(objective=name, training={"epochs": 1})
    assert isinstance(model.objective, OBJECTIVES[name])
    before = {key: p.clone() for key, p in model.named_parameters()}
    train(model, rows, settings.training, fabric=Fabric(accelerator="cpu", devices=1), reporter=Quiet())
    still = {key for key, p in model.named_parameters() if torch.equal(p, before[key])}
    assert still == set()
    assert (model.noise is not None and bool(list(model.noise.parameters()))) == (name != "fixed")


@pytest.mark.parametrize(
    ("objective", "noise", "generator", "positive"),
    [
        ("supported", {}, GlobalGenerator, "fixed-entropy"),
        ("supported", {"generator": "shared", "positive": "abs"}, SharedGenerator, "abs"),
        ("paper", {}, MLPGenerator, "softplus"),
        ("paper", {"generator": "global", "positive": "fixed-entropy"}, GlobalGenerator, "fixed-entropy"),
        ("information", {}, MLPGenerator, "softplus"),
        ("adversarial", {}, MLPGenerator, "fixed-entropy"),
        ("fixed", {}, ConstantGenerator, "softplus"),
        ("fixed", {"generator": "mlp"}, ConstantGenerator, "softplus"),
    ],
)
def test_generator_and_map_follow_the_objective_where_they_are_not_given(
    problem: Problem, objective: str, noise: dict[str, Any], generator: type, positive: str
) -> None:
    _, model, _ = problem(objective=objective, noise=noise)
    assert isinstance(model.noise.generator, generator)
    assert model.noise.positive == positive


@pytest.mark.parametrize(
    ("changes", "pairing"),
    [
        ({}, "noise-noise"),
        ({"objective": "paper"}, "identity-noise"),
        ({"objective": "adversarial"}, "identity-noise"),
        ({"views": {"augmentations": ["scarf", "dacl"]}}, "sampled"),
        ({"views": {"augmentations": ["neighbours"]}, "objective": "paper"}, "sampled"),
        ({"views": {"noise": "none", "augmentations": ["modals"]}}, "sampled"),
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


def test_simclr_without_any_view_is_refused(problem: Problem) -> None:
    with pytest.raises(UserError, match="'simclr' compares two views"):
        problem(views={"noise": "none"})


@pytest.mark.parametrize("noise", ["gaussian", "scarf", "neighbours"])
def test_the_default_objective_has_nothing_to_shape_in_predefined_views(problem: Problem, noise: str) -> None:
    _, model, rows = problem(views={"noise": noise})
    assert isinstance(model.objective, Fixed)
    loss, losses = model(some(rows))
    assert loss == losses.mean()


def test_modals_become_four_augmentations(problem: Problem) -> None:
    _, model, _ = problem(views={"noise": "none", "augmentations": ["modals"]})
    assert len(model.pairing.augmentations) == 4


def test_fixed_noise_has_no_parameters_and_keeps_its_scale(problem: Problem) -> None:
    _, model, rows = problem(objective="fixed", noise={"initial_scale": 0.7})
    assert list(model.noise.parameters()) == []
    x = rows[torch.arange(5)]
    scale = model.noise.relative_scale(x)
    assert scale[:, model.noise.feature_scale > 0].unique().tolist() == pytest.approx([0.7])


def test_dead_features_get_no_noise(problem: Problem, digits: np.ndarray) -> None:
    dead = torch.from_numpy(digits.std(axis=0) == 0)
    assert dead.any()
    for objective in OBJECTIVES:
        _, model, rows = problem(objective=objective)
        noise = model.noise.sample(rows[torch.arange(50)])
        assert (noise[:, dead] == 0).all()
        assert (noise[:, ~dead] != 0).any()


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


def test_an_initial_scale_that_is_asked_for_replaces_how_much_neighbours_differ(problem: Problem) -> None:
    _, model, rows = problem(noise={"initial_scale": 0.4})
    assert model.noise.initial_scale.unique().tolist() == pytest.approx([0.4])
    live = model.noise.feature_scale > 0
    torch.testing.assert_close(model.noise.relative_scale(rows[torch.arange(2)])[:, live].unique(), torch.tensor([0.4]))
    assert model.noise.support is not None


@pytest.mark.parametrize("covariance", ["diagonal", "mixed"])
def test_noise_without_neighbours_stays_where_the_sample_is(problem: Problem, covariance: str) -> None:
    _, model, rows = problem(noise={"neighbours": 0, "initial_scale": 0.01, "covariance": covariance})
    assert not model.noise.moves
    assert (model.noise.support is None) == (covariance == "diagonal")
    assert model.pairing.name == "noise-noise"
    x = rows[torch.arange(50)]
    assert (model.noise.sample(x) / model.noise.feature_scale.clamp_min(1)).square().mean().sqrt() < 0.02


def test_the_prior_of_duplicates_is_a_number(digits: np.ndarray) -> None:
    x = np.repeat(digits[:3], 20, axis=0)  # no row differs from its nearest
    standardizer = Standardizer.fit(x)
    noise = build_model(parse_settings({}), standardizer, make_rows(x, standardizer)).noise
    assert noise is not None
    live = noise.feature_scale > 0
    assert noise.initial_scale[live].unique().tolist() == pytest.approx([math.exp(-2)])


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


def test_the_bank_of_neighbours_is_a_sample_of_many_rows(
    problem: Problem, digits: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole, rows = problem()
    assert torch.equal(whole.noise.support.bank, rows[torch.arange(300)])
    monkeypatch.setattr("pinoise.noise.support.SUPPORT_ROWS", 70)
    _, model, rows = problem()
    support = model.noise.support
    assert (support.rows, support.k, len(support.bank)) == (300, 10, 70)
    assert (support.numbers.diff() > 0).all()
    assert torch.equal(support.bank, rows[support.numbers])
    assert support.numbers.max() > 200  # from all over the data
    assert torch.equal(support.numbers, Support.of(rows, k=3).numbers)  # whatever the random state
    step = model(some(rows, 100))  # rows inside and outside the bank
    assert torch.isfinite(step.loss)


def test_the_view_of_neighbours_has_the_nearest_as_they_are(problem: Problem) -> None:
    _, model, rows = problem(views={"noise": {"name": "neighbours", "k": 5}})
    view = model.pairing.noise
    assert isinstance(view, Neighbour)
    x = rows[torch.arange(300)]
    expected = NearestNeighbors(n_neighbors=5).fit(x).kneighbors(return_distance=False)
    found = view.support.neighbours(x, torch.arange(300))
    assert bool(found.eligible.all())
    for mine, theirs in zip(found.positions.tolist(), expected.tolist(), strict=True):
        assert set(mine) == set(theirs)


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_neighbours_are_the_same_in_mixed_precision(problem: Problem, dtype: torch.dtype) -> None:
    _, model, rows = problem()
    x, numbers = 30 * rows[torch.arange(300)], torch.arange(300)  # squared distances beyond what half precision holds
    model.noise.support.bank.mul_(30)
    exact = model.noise.support.neighbours(x, numbers)
    model.noise.support.float()  # forgets what it knows
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", dtype=dtype):
        mixed = model.noise.support.neighbours(x, numbers)
    for mine, theirs in zip(mixed, exact, strict=True):
        assert torch.equal(mine, theirs)


def test_the_viewmaker_is_as_wide_as_asked_for_and_keeps_its_budget(problem: Problem) -> None:
    _, model, rows = problem(views={"noise": {"name": "viewmaker", "budget": 0.3}}, objective="adversarial")
    view = model.pairing.noise
    assert isinstance(view, Viewmaker)
    assert view.network.hidden == 32
    batch = some(rows)
    moved = (view(batch).x - batch.x).abs()
    live = view.feature_scale > 0
    torch.testing.assert_close(moved[:, live].mean(dim=1), torch.full((20,), 0.3))


def test_the_bank_of_scarf_holds_training_rows(problem: Problem) -> None:
    _, model, rows = problem(views={"noise": "scarf"})
    view = model.pairing.noise
    assert isinstance(view, ScarfSwap)
    assert torch.equal(view.bank, rows[torch.arange(300)])


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


def test_tensors_of_other_noise_do_not_fit(problem: Problem, digits: np.ndarray) -> None:
    settings, model, _ = problem(objective="paper")
    tensors = dict(model.noise.state_dict())
    tensors.popitem()
    with pytest.raises(RuntimeError, match="Missing key"):
        restore_noise(settings, Standardizer.fit(digits), model.method.encoder, tensors)


def test_networks_that_cannot_fit_in_memory_are_refused_at_once(problem: Problem) -> None:
    with pytest.raises(UserError, match=r"need about \d+ GB and this machine has \d+: make them narrower"):
        problem(
            encoder={"hidden": 65_536}, objective="paper", noise={"generator": {"hidden": 65_536}, "mean": "learned"}
        )


def test_constant_data_is_refused() -> None:
    x = np.ones((10, 3))
    standardizer = Standardizer.fit(x)
    with pytest.raises(UserError, match="every feature is constant"):
        build_model(Settings(), standardizer, make_rows(x, standardizer))
