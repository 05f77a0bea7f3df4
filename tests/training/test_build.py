from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import CLAE, SimCL, SimCLR
from pinoise.training.build import build_model
from pinoise.training.loop import train
from pinoise.training.progress import Quiet
from pinoise.training.settings import Settings
from pinoise.views import Batch, PiNoiseView, ScarfSwap

Problem = Callable[..., Any]


@pytest.mark.parametrize(("name", "kind"), [("simclr", SimCLR), ("simcl", SimCL), ("clae", CLAE)])
@pytest.mark.parametrize("noise", [{"mean": "zero"}, {"mean": "learned"}, {"distribution": "uniform"}])
@pytest.mark.parametrize("generator", ["mlp", "shared"])
def test_pinda_composes_with_every_method(
    problem: Problem, name: str, kind: type, noise: dict[str, str], generator: str
) -> None:
    settings, model, rows = problem(
        method=name, noise={**noise, "generator": generator}, training={"epochs": 6, "learning_rate": 3e-3}
    )
    assert isinstance(model.method, kind)
    assert isinstance(model.pairing.noise, PiNoiseView)
    before = [p.clone() for p in model.noise.parameters()]
    history = train(model, rows, settings.training, fabric=Fabric(accelerator="cpu", devices=1), reporter=Quiet())
    assert history[-1].loss < history[0].loss
    assert any(not torch.equal(a, b) for a, b in zip(before, model.noise.parameters(), strict=True))


@pytest.mark.parametrize(
    ("views", "pairing"),
    [
        ({}, "identity-noise"),
        ({"augmentations": ["scarf", "dacl"]}, "sampled"),
        ({"noise": "none", "augmentations": ["modals"]}, "sampled"),
        ({"noise": "vime"}, "identity-noise"),
        ({"pairing": "noise-noise"}, "noise-noise"),
        ({"pairing": "compose", "augmentations": ["gaussian"]}, "compose"),
    ],
)
def test_the_pairing_follows_from_the_views(problem: Problem, views: dict[str, Any], pairing: str) -> None:
    _, model, rows = problem(views=views)
    assert model.pairing.name == pairing
    assert torch.isfinite(model(Batch(rows[torch.arange(20)], torch.arange(20))).loss)


@pytest.mark.parametrize("method", ["simcl", "clae"])
def test_methods_that_make_their_own_views_need_no_noise(problem: Problem, method: str) -> None:
    _, model, rows = problem(method=method, views={"noise": "none"})
    assert model.pairing.name == "identity"
    assert model.noise is None
    assert torch.isfinite(model(Batch(rows[torch.arange(20)], torch.arange(20))).loss)


def test_simclr_without_any_view_is_refused(problem: Problem) -> None:
    with pytest.raises(UserError, match="'simclr' compares two views"):
        problem(views={"noise": "none"})


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
    _, model, rows = problem()
    dead = torch.from_numpy(digits.std(axis=0) == 0)
    assert dead.any()
    noise = model.noise.sample(rows[torch.arange(50)])
    assert (noise[:, dead] == 0).all()
    assert (noise[:, ~dead] != 0).any()


def test_the_bank_of_scarf_holds_training_rows(problem: Problem) -> None:
    _, model, rows = problem(views={"noise": "scarf"})
    view = model.pairing.noise
    assert isinstance(view, ScarfSwap)
    assert torch.equal(view.bank, rows[torch.arange(300)])


def test_networks_that_cannot_fit_in_memory_are_refused_at_once(problem: Problem) -> None:
    with pytest.raises(UserError, match=r"need about \d+ GB and this machine has \d+: make the hidden layers narrower"):
        problem(encoder={"hidden": 65_536}, noise={"hidden": 65_536, "mean": "learned"})


def test_constant_data_is_refused() -> None:
    x = np.ones((10, 3))
    standardizer = Standardizer.fit(x)
    with pytest.raises(UserError, match="every feature is constant"):
        build_model(Settings(), standardizer, make_rows(x, standardizer))
