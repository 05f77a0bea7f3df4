"""``views.noise: auto``: short trial fits of a few kinds of noise, and a score without labels that chooses one.

The score is how far clusters of the embedding lie apart. Of the scores that were studied
(``benchmarks/noise_choice.py``), it goes best with few-label accuracy after a short trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Interrupted, Quiet
from pinoise.training.config import Settings
from pinoise.training.loop import Machine, train
from pinoise.training.objectives import ContrastiveModel


class NoiseKind(NamedTuple):
    """A kind of noise that may be chosen."""

    covariance: str
    neighbours: int | None = None  # None leaves the number, and the amplitude, as it is
    amplitude: float | None = None


NOISE_KINDS: Mapping[str, NoiseKind] = {
    "mixed": NoiseKind("mixed"),
    "neighbours": NoiseKind("diagonal"),
    "differences": NoiseKind("differences", neighbours=0),
    "both": NoiseKind("differences"),
}

_SCORED_ROWS, _SCORED_BATCH = 512, 128


class Trial(NamedTuple):
    """A candidate and its score."""

    name: str
    score: float


def check_trials(settings: Settings) -> None:
    """Refuse too few epochs to divide among trials, where there are any."""
    if settings.is_automatic and settings.training.epochs < len(NOISE_KINDS):
        raise UserError(
            f"epochs is {settings.training.epochs}, and noise 'auto' tries {len(NOISE_KINDS)} kinds for a quarter of "
            f"the epochs each: give at least {len(NOISE_KINDS)} epochs, or choose the covariance yourself."
        )


def choose_noise(
    settings: Settings,
    standardizer: Standardizer,
    rows: Rows,
    *,
    machine: Machine,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Trial]:
    """Fit every candidate for a quarter of the epochs, and return their scores, the highest first.

    All processes of a group train together, so that all come to the same choice.

    Args:
        settings: with ``views.noise`` auto.
        standardizer: the units of the samples.
        rows: standardised samples.
        machine: device, precision and processes.
        should_stop: called after every step; if it returns True, a ``UserError`` says that nothing is saved.
    """
    check_trials(settings)
    epochs = settings.training.epochs // len(NOISE_KINDS)
    short = settings.training.model_copy(update={"epochs": epochs, "information_draws": 0})
    trials = []
    for name, candidate in NOISE_KINDS.items():
        trial = with_noise(settings, candidate).model_copy(update={"training": short})
        model = seeded_model(trial, standardizer, rows)
        try:
            train(model, rows, short, machine=machine, reporter=Quiet(), should_stop=should_stop)
        except Interrupted:
            raise UserError("stopped while kinds of noise were tried: nothing is saved; start again.") from None
        trials.append(Trial(name, _score(model, rows)))
    return sorted(trials, key=lambda trial: -trial.score)


def with_noise(settings: Settings, candidate: NoiseKind) -> Settings:
    """Return settings with a candidate as their noise.

    >>> found = with_noise(Settings(), NOISE_KINDS["differences"])
    >>> found.noise.covariance, found.noise.neighbours
    ('differences', 0)
    """
    noise = {key: value for key, value in candidate._asdict().items() if value is not None}
    views = {"noise": Settings().views.noise}
    return settings.model_copy(
        update={"noise": settings.noise.model_copy(update=noise), "views": settings.views.model_copy(update=views)}
    )


def with_best_noise(settings: Settings, scores: Mapping[str, float]) -> Settings:
    """Return settings with the noise of the highest score, where they leave the choice to trials.

    >>> with_best_noise(Settings(), {}) == Settings()
    True
    """
    if not settings.is_automatic:
        return settings
    return with_noise(settings, NOISE_KINDS[max(scores, key=lambda name: scores[name])])


@torch.no_grad()
def _score(model: ContrastiveModel, rows: Rows) -> float:
    encoder = model.to("cpu").eval().method.encoder
    size = min(_SCORED_ROWS, len(rows))
    chosen = torch.arange(size) * len(rows) // size  # evenly spaced, as files may be sorted
    return separation(torch.cat([encoder(rows[some]) for some in chosen.split(_SCORED_BATCH)]))


def separation(z: Tensor, *, clusters: int = 20) -> float:
    """The mean silhouette of k-means clusters on the unit sphere: higher if samples form groups apart from each other.

    Args:
        z: embeddings (m, o) of m different samples.
        clusters: the most clusters; with few samples, half as many as samples.

    >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    >>> round(separation(groups), 2)
    0.95
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    unit = F.normalize(z.detach().double(), dim=1).numpy()
    number = min(clusters, len(unit) // 2, len(np.unique(unit, axis=0)) - 1)
    if number < 2:
        return -1.0  # fewer groups than two cannot lie apart
    return float(silhouette_score(unit, KMeans(number, n_init=3, random_state=0).fit_predict(unit)))


def described(trials: Sequence[Trial]) -> str:
    """Return the choice in words.

    >>> described([Trial("differences", 0.25), Trial("mixed", 0.2)])
    "'differences', whose clusters lie farthest apart: differences 0.25, mixed 0.20"
    """
    scores = ", ".join(f"{trial.name} {trial.score:.2f}" for trial in trials)
    return f"{trials[0].name!r}, whose clusters lie farthest apart: {scores}"
