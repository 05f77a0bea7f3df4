"""Every method with every noise, on real vectors and real images: it learns, and resumes to the bit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.training.stops import assert_same_history, assert_same_tensors, cpu
from torch import Tensor

from pinoise.data import load
from pinoise.data.rows import Rows, make_rows
from pinoise.training.build import build_model, build_standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.loop import shuffled_rows, train
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import run_health
from pinoise.views import Batch

N_ROWS, BATCH, EPOCHS = 64, 32, 10
PER_EPOCH = N_ROWS // BATCH
STEPS = PER_EPOCH * EPOCHS
SAVED_AT = 13  # in the middle of an epoch
PROTOTYPES, QUEUE = 64, 128

COMMON: dict[str, Any] = {
    "head": {"hidden": 32, "out_features": 16},
    "noise": {"generator": {"hidden": 32}, "neighbours": 2},  # of so few rows
    "training": {
        "epochs": EPOCHS,
        "batch_size": BATCH,
        "learning_rate": 5e-3,
        "device": "cpu",
        "information_draws": 0,
        "checkpoint_every": SAVED_AT,
    },
}
KINDS: dict[str, dict[str, Any]] = {
    "vector": {"encoder": {"hidden": 32, "out_features": 16}},
    "image": {"encoder": {"name": "resnet18", "width": 4}},
}
# Networks that follow another have to follow it sooner in so few steps.
METHODS: dict[str, dict[str, Any]] = {
    "simclr": {},
    "moco": {"queue": QUEUE, "momentum": 0.9},
    "byol": {"momentum": 0.9},
    "simsiam": {},
    "dino": {"prototypes": PROTOTYPES, "momentum": 0.9},
}
NOISES: dict[str, dict[str, Any]] = {
    "no noise": {},
    "zero mean": {"noise": {"mean": "zero"}},
    "learned mean": {"noise": {"mean": "learned"}},
    "uniform": {"noise": {"distribution": "uniform"}},
}
COVARIANCES = ("mixed", "differences", "low-rank")
NOISES |= {name: {"noise": {"covariance": name}} for name in COVARIANCES}
PREDEFINED = {"vector": "scarf", "image": "simclr"}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    x: np.ndarray = load_digits().data[:N_ROWS]
    return x


@pytest.fixture(scope="module")
def images(real_data: Path) -> np.ndarray:
    """Colour photographs, every fourth pixel of them."""
    return np.asarray(load("cifar10_sub12k").train.x[:N_ROWS])[:, ::4, ::4]


def settings_of(kind: str, method: str, noise: str) -> Settings:
    values = merge(merge(COMMON, KINDS[kind]), {"method": {"name": method, **METHODS[method]}})
    if noise == "no noise":
        values["views"] = {"noise": "none", "augmentations": [PREDEFINED[kind]]}
    return parse_settings(merge(values, NOISES[noise]))


def fresh_model(settings: Settings, x: np.ndarray) -> tuple[ContrastiveModel, Rows]:
    standardizer = build_standardizer(settings, x)
    rows = make_rows(x, standardizer)
    torch.manual_seed(0)
    return build_model(settings, standardizer, rows), rows


@torch.no_grad()
def settled(model: ContrastiveModel, rows: Rows) -> ContrastiveModel:
    """A copy after as many steps without an optimiser: the queue, the bank, the centre and the statistics of
    batches are those of untrained weights, so that its loss can be compared with that of a trained model."""
    model = copy.deepcopy(model)
    for step in range(STEPS):
        epoch, position = divmod(step, PER_EPOCH)
        chosen = shuffled_rows(N_ROWS, seed=0, epoch=epoch)[position * BATCH : (position + 1) * BATCH]
        model(Batch(rows[chosen], chosen))
        model.after_step(step, STEPS)
    return model


@torch.no_grad()
def mean_loss(model: ContrastiveModel, rows: Rows) -> float:
    """ℓ of all rows, in batches as in training, under random numbers that are always the same."""
    torch.manual_seed(7)
    losses = [model.look(Batch(rows[chosen], chosen)).losses for chosen in torch.arange(N_ROWS).split(BATCH)]
    return torch.cat(losses).mean().item()


def learned_weights(model: ContrastiveModel) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if weight.requires_grad}


COMBINATIONS = [
    *((method, noise) for method in METHODS for noise in NOISES if noise not in COVARIANCES),
    *(("simclr", noise) for noise in COVARIANCES),
]


@pytest.mark.parametrize(("method", "noise"), COMBINATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_method_learns_with_a_noise_and_resumes_exactly(
    kind: str, method: str, noise: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    x = request.getfixturevalue(f"{kind}s")
    settings = settings_of(kind, method, noise)
    model, rows = fresh_model(settings, x)
    began = learned_weights(model)
    untrained = settled(model, rows)
    history = train(model, rows, settings.training, machine=cpu(), reporter=Quiet(), checkpoints=tmp_path)
    ended = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    assert not {flag.name for flag in run_health(model, rows, settings, history)} & {"embedding-collapse", "non-finite"}
    assert [name for name, weight in learned_weights(model).items() if torch.equal(weight, began[name])] == []
    assert mean_loss(model, rows) < mean_loss(untrained, rows)
    psi = [name for name in began if name.startswith("pairing.")]
    assert bool(psi) == (noise != "no noise")

    torch.manual_seed(12345)  # what happens in between must not matter
    resumed, _ = fresh_model(settings, x)
    previous = tmp_path / "previous.ckpt"
    assert torch.load(previous, weights_only=True)["step"] == SAVED_AT
    again = train(resumed, rows, settings.training, machine=cpu(), reporter=Quiet(), resume_from=previous)
    assert_same_tensors(resumed.state_dict(), ended)
    assert_same_history(again, history)
