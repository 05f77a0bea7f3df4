"""Runs read back from their folders are what was trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_digits

from pinoise.data.rows import make_rows
from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.model import Model, contrastive_model, load_run
from pinoise.networks import read_tensors, write_tensors
from pinoise.noise import PiNoise
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import read_config
from pinoise.training.run import TrainedModel, run_training
from pinoise.views import Batch

SMALL: dict[str, Any] = {
    "data": {"source": "digits", "rows": 200},
    "encoder": {"hidden": 32, "out_features": 8},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"generator": {"hidden": 16}},
    "training": {"epochs": 2, "batch_size": 64, "device": "cpu", "information_draws": 2},
}


def trained(folder: Path, changes: dict[str, Any] | None = None) -> tuple[TrainedModel, Model]:
    """Return what training in a folder ended with, and what is read from the folder."""
    fitted = run_training(folder, parse_settings(merge(SMALL, changes or {})), reporter=Quiet())
    return fitted, load_run(folder)


def draws(noise: PiNoise, x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(11)
    with torch.no_grad():
        return noise.sample(x, draws=3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"noise": {"generator": "shared", "mean": "learned", "initial_scale": 0.5}},
        {"noise": {"neighbours": 0}},
        {"objective": "paper", "noise": {"distribution": "uniform", "normalize": 1.0}},
        {"objective": "fixed"},
        {"data": {"scaling": "rows"}},
    ],
)
def test_noise_and_embedding_of_a_folder_are_those_that_were_trained(tmp_path: Path, changes: dict[str, Any]) -> None:
    fitted, run = trained(tmp_path / "run", changes)
    noise = fitted.model.eval().noise
    rows = run.rows(np.asarray(load_digits().data[250:290]), where="digits")
    x = rows[torch.arange(40)]
    assert run.noise is not None
    assert noise is not None
    assert (run.noise.support is None) == (noise.support is None)
    assert torch.equal(draws(run.noise, x), draws(noise, x))
    assert torch.equal(run.noise.relative_scale(x), noise.relative_scale(x))
    expected = embed(fitted.embedding, rows)
    np.testing.assert_array_equal(embed(run.embedding, rows), expected)
    assert expected.shape == (40, 64 + 8)
    np.testing.assert_equal(run.history, fitted.history)
    assert run.flags == [flag.name for flag in fitted.flags]
    assert not run.embedding.training


def test_the_support_is_in_the_folder_and_nowhere_else(tmp_path: Path) -> None:
    _, run = trained(tmp_path / "run")
    stored = read_tensors(tmp_path / "run/noise.safetensors")
    rows = run.rows(run.own_data().train.x, where="digits")
    assert torch.equal(stored["support.bank"], rows[torch.arange(200)])
    assert run.noise is not None
    assert run.noise.support is not None
    assert torch.equal(run.noise.support.metric, stored["support.metric"])


@pytest.mark.parametrize("changes", [{}, {"objective": "paper", "method": "clae"}, {"views": {"noise": "scarf"}}])
def test_the_whole_model_of_a_run_comes_from_its_last_checkpoint(tmp_path: Path, changes: dict[str, Any]) -> None:
    fitted, run = trained(tmp_path / "run", changes)
    rows = make_rows(run.own_data().train.x, run.standardizer)
    model = contrastive_model(run, rows)
    assert not model.training
    stored = fitted.model.state_dict()
    assert model.state_dict().keys() == stored.keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, stored[name]), name
    batch = Batch(rows[torch.arange(50)], torch.arange(50))
    losses = []
    for each in (model, fitted.model):
        torch.manual_seed(2)
        losses.append(each.look(batch).losses)
    assert torch.equal(*losses)


def test_a_run_without_its_checkpoint_has_no_whole_model(tmp_path: Path) -> None:
    _, run = trained(tmp_path / "run")
    rows = make_rows(run.own_data().train.x, run.standardizer)
    config = tmp_path / "run/config.yaml"
    config.write_text(config.read_text().replace("hidden: 32", "hidden: 33"))
    wider = dataclasses.replace(run, settings=read_config(tmp_path / "run"))
    with pytest.raises(UserError, match=r"encoder\.hidden is 33 in config\.yaml and 32 in it"):
        contrastive_model(wider, rows)
    for path in (tmp_path / "run/checkpoints").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="checkpoints is empty"):
        contrastive_model(run, rows)


def test_sparse_rows_are_scaled_to_length_1_in_a_run_as_in_training(tmp_path: Path) -> None:
    x = sp.csr_array(np.random.default_rng(0).poisson(0.06, size=(120, 40)))
    lines = []
    for row in range(120):
        entries = range(x.indptr[row], x.indptr[row + 1])
        lines.append(" ".join([str(row % 2), *(f"{x.indices[i] + 1}:{x.data[i]}" for i in entries)]))
    (tmp_path / "x.svm").write_text("\n".join(lines) + "\n")
    fitted, run = trained(tmp_path / "run", {"data": {"source": str(tmp_path / "x.svm")}})
    assert run.standardizer.unit_rows
    rows = run.rows(run.own_data().train.x, where="x.svm")
    assert run.noise is not None
    some = rows[torch.arange(30)]
    assert torch.equal(draws(run.noise, some), draws(fitted.model.noise, some))  # type: ignore[arg-type]


@pytest.mark.parametrize("harm", ["support.bank", "support.metric", "generator.raw", "initial_scale"])
def test_noise_that_does_not_fit_is_one_sentence(tmp_path: Path, harm: str) -> None:
    trained(tmp_path / "run")
    path = tmp_path / "run/noise.safetensors"
    tensors = read_tensors(path)
    for changed in (tensors[harm][..., :-1], None):
        damaged = {name: tensor for name, tensor in tensors.items() if name != harm}
        write_tensors(path, damaged if changed is None else {**damaged, harm: changed})
        with pytest.raises(UserError, match=r"do not fit its configuration|give a support|initial_scale has shape"):
            load_run(tmp_path / "run")


def test_a_standardiser_without_all_its_parts_is_one_sentence(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    path = tmp_path / "run/standardizer.safetensors"
    write_tensors(path, {name: tensor for name, tensor in read_tensors(path).items() if name != "deviation"})
    with pytest.raises(UserError, match=r"standardizer\.safetensors has no tensor 'deviation'"):
        load_run(tmp_path / "run")
