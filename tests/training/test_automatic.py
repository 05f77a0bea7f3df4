"""A kind of noise that trial fits choose without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from sklearn.datasets import load_digits

from pinoise import PiNDA
from pinoise.errors import UserError
from pinoise.estimator.parameters import settings_from
from pinoise.model import load_run
from pinoise.training.automatic import NOISE_KINDS, Trial, choose_noise, separation, with_noise
from pinoise.training.build import build_standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.folder import read_record
from pinoise.training.run import run_training
from pinoise.training.together import machine_of

X = load_digits().data[:200]
SMALL: dict[str, Any] = {"n_components": 8, "hidden": 16, "epochs": 4, "batch_size": 50, "random_state": 0}
SETTINGS = {
    "data": {"source": "digits", "rows": 200},
    "encoder": {"hidden": 16, "out_features": 8},
    "views": {"noise": "auto"},
    "training": {"epochs": 4, "batch_size": 50, "information_draws": 0},
}


def test_separation_is_high_where_samples_form_groups() -> None:
    random = torch.Generator().manual_seed(0)
    groups = torch.eye(20).repeat(5, 1) + 0.02 * torch.randn(100, 20, generator=random)
    assert separation(groups) > 0.8 > 0.2 > separation(torch.randn(100, 20, generator=random))
    assert separation(torch.ones(10, 3)) == -1


def test_trials_are_repeatable_and_sorted_by_their_score() -> None:
    settings = parse_settings(SETTINGS)
    standardizer = build_standardizer(settings, X)
    rows = torch.from_numpy(np.where(standardizer.scale > 0, X - standardizer.mean, 0)).float()
    machine = machine_of(settings.training)
    trials = choose_noise(settings, standardizer, rows, machine=machine)
    assert {trial.name for trial in trials} == set(NOISE_KINDS)
    assert [trial.score for trial in trials] == sorted((trial.score for trial in trials), reverse=True)
    again = choose_noise(settings, standardizer, rows, machine=machine)
    assert again == trials


def test_the_estimator_goes_on_with_the_chosen_noise_and_keeps_it_in_its_file(tmp_path: Path) -> None:
    model = PiNDA(noise="auto", **SMALL).fit(X)
    chosen = NOISE_KINDS[next(iter(model.trials_))]
    assert model.noise_.covariance == chosen.covariance
    assert model.noise_.moves == (chosen.neighbours is None)
    plain = PiNDA(covariance=chosen.covariance, neighbours=chosen.neighbours, **SMALL).fit(X)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    assert plain.trials_ == {}
    model.save(tmp_path / "model.safetensors")
    loaded = PiNDA.load(tmp_path / "model.safetensors")
    assert loaded.trials_ == model.trials_
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.augment(X), model.augment(X))


def test_a_run_writes_the_choice_into_its_configuration(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = run_training(tmp_path / "run", parse_settings(SETTINGS), reporter=Quiet(), note=said.append)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    chosen = NOISE_KINDS[outcome.trials[0].name]
    assert config["views"]["noise"]["name"] == "pi"
    assert config["noise"]["covariance"] == chosen.covariance
    run = load_run(tmp_path / "run")
    assert run.noise is not None
    assert run.noise.covariance == chosen.covariance
    assert any(f"the noise is {outcome.trials[0].name!r}" in sentence for sentence in said)
    assert f"the noise is {outcome.trials[0].name!r}" in read_record(run.path / "data.json").notes[-1]
    assert json.dumps(config)  # plain values


def test_too_few_epochs_for_trials_are_refused_before_any_work(tmp_path: Path) -> None:
    settings = parse_settings({**SETTINGS, "training": {"epochs": 3}})
    with pytest.raises(UserError, match=r"epochs is 3, and noise 'auto' tries 4 kinds .*at least 4 epochs"):
        run_training(tmp_path / "run", settings, reporter=Quiet())
    assert not (tmp_path / "run").exists()


def test_stopping_among_the_trials_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"stopped while kinds of noise were tried: nothing is saved"):
        run_training(tmp_path / "run", parse_settings(SETTINGS), reporter=Quiet(), should_stop=lambda: True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "paper"}, r"noise.neighbours is 0, .*or choose objective 'supported'"),
        ({"noise": {"covariance": "mixed"}}, r"noise.covariance is given, and views.noise 'auto' chooses it"),
        ({"noise": {"amplitude": 2.0}}, r"noise.amplitude is given"),
        ({"noise": {"neighbours": 0}}, r"'auto' chooses whether samples move to neighbours"),
        ({"noise": {"initial_scale": 2.0}}, r"noise.initial_scale is given"),
    ],
)
def test_settings_that_leave_nothing_to_choose_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_settings({"views": {"noise": "auto"}, **changes})


def test_the_estimator_refuses_other_noises() -> None:
    with pytest.raises(UserError, match=r"unknown noise 'scarf'.*Allowed: pi, auto"):
        settings_from(vars(PiNDA(noise="scarf")), seed=0)


def test_a_candidate_changes_the_noise_alone() -> None:
    settings = parse_settings({"training": {"seed": 3}, "objective": {"weight": 0.1}})
    found = with_noise(settings, NOISE_KINDS["both"])
    assert found.noise.covariance == "differences"
    assert found.objective.options == {"weight": 0.1}
    assert found.model_copy(update={"noise": settings.noise}) == settings
    assert Trial("both", 1.0).name in NOISE_KINDS


def test_the_estimator_speaks_of_its_own_parameters() -> None:
    with pytest.raises(UserError, match=r"^covariance is given, and noise 'auto' chooses it"):
        PiNDA(noise="auto", covariance="mixed", **SMALL).fit(X)
    with pytest.raises(UserError, match=r"^amplitude is 2.0, a multiple of how much neighbours differ, and this noise"):
        PiNDA(objective="paper", amplitude=2.0, **SMALL).fit(X)
