"""Fit a model in memory, as the estimator and comparisons do, and the parts that a run folder shares with them."""

from __future__ import annotations

from typing import NamedTuple

import torch

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.information import HealthFlag, check_noise
from pinoise.training.build import build_model
from pinoise.training.device import make_fabric
from pinoise.training.loop import Reporter, noise_summary, probe_rows, train
from pinoise.training.model import ContrastiveModel
from pinoise.training.settings import Settings
from pinoise.training.state import BUILDING, Record, seed_of


class Fitted(NamedTuple):
    """A trained model, on the CPU, and how its training went."""

    model: ContrastiveModel
    history: list[Record]
    flags: list[HealthFlag]


def fit(settings: Settings, standardizer: Standardizer, rows: Rows, *, reporter: Reporter) -> Fitted:
    """Build and train a model; the caller's random numbers are left as they were."""
    fabric = make_fabric(settings.training)
    with torch.random.fork_rng(devices=[fabric.device] if fabric.device.type == "cuda" else []):
        model = seeded_model(settings, standardizer, rows)
        history = train(model, rows, settings.training, fabric=fabric, reporter=reporter)
    model.to("cpu").eval()
    return Fitted(model, history, noise_health(model, rows))


def seeded_model(settings: Settings, standardizer: Standardizer, rows: Rows) -> ContrastiveModel:
    """Build the model whose initial weights the seed of the settings decides."""
    torch.manual_seed(seed_of(settings.training.seed, BUILDING))
    return build_model(settings, standardizer, rows)


def noise_health(model: ContrastiveModel, rows: Rows) -> list[HealthFlag]:
    """Return what is wrong with the learned noise; noise that is not learned has nothing to answer for."""
    if model.noise is None or not model.objective.learns_noise:
        return []
    device = model.noise.feature_scale.device
    return check_noise(noise_summary(model, probe_rows(rows).to(device)))
