"""Fit a model in memory, for the estimator and for comparisons, and judge its health, also for run folders."""

from __future__ import annotations

from typing import NamedTuple

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.information import HealthFlag
from pinoise.training.build import seeded_model
from pinoise.training.config import Settings
from pinoise.training.device import kept_randomness, make_fabric
from pinoise.training.loop import train
from pinoise.training.metrics import model_health
from pinoise.training.model import ContrastiveModel
from pinoise.training.progress import Record, Reporter


class Fitted(NamedTuple):
    """A trained model on the CPU, its history and its health flags."""

    model: ContrastiveModel
    history: list[Record]
    flags: list[HealthFlag]


def fit(settings: Settings, standardizer: Standardizer, rows: Rows, *, reporter: Reporter) -> Fitted:
    """Build and train a model. The caller's random state is not changed."""
    fabric = make_fabric(settings.training)
    with kept_randomness(fabric.device):
        model = seeded_model(settings, standardizer, rows)
        history = train(model, rows, settings.training, fabric=fabric, reporter=reporter)
    model.to("cpu").eval()
    if model.noise is not None and model.noise.support is not None:
        model.noise.support.fetch = None  # the fitted model must not keep the training data in memory
    return Fitted(model, history, run_health(model, rows, settings, history))


def run_health(
    model: ContrastiveModel, rows: Rows, settings: Settings, history: list[Record], *, processes: int = 1
) -> list[HealthFlag]:
    """Return the health flags of a trained model, from its last epoch. ``processes`` is the number that trained it."""
    batch_size = min(settings.training.batch_size, len(rows) // processes)
    return model_health(model, rows, contrast=history[-1].metrics["contrast"], batch_size=batch_size)
