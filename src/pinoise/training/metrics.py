"""What is measured while a model is trained: the noise, the embedding and the information in the noise."""

from __future__ import annotations

import math
from contextlib import suppress

import torch

from pinoise.data.rows import Rows
from pinoise.errors import UserError
from pinoise.information import (
    HealthFlag,
    InformationEstimate,
    check_health,
    measure_embedding,
    measure_information,
    measure_noise,
)
from pinoise.networks import evaluating
from pinoise.training.device import kept_randomness
from pinoise.training.model import ContrastiveModel
from pinoise.views import Batch

NOISE_METRICS = ("sigma_mean", "sigma_median", "participation", "cleanest")
"""Of learned noise, after every epoch; nan without it."""

COSTLY_METRICS = (
    "effective_rank",
    "spread",
    "task_entropy",
    "conditional_entropy",
    "information",
    "information_error",
    "plug_in",
    "plug_in_error",
)
"""After about ten epochs of a run, the last among them; nan after the others."""

METRICS = ("contrast", *NOISE_METRICS, *COSTLY_METRICS)
"""Names of all that a record holds beside the loss; ``contrast`` is the mean of ℓ, without what an objective adds."""

_PROBE_ROWS = 256
_PROBE_IMAGES = 64  # for what takes many passes through an image network
_COSTLY_TIMES = 10


def probe_batch(rows: Rows) -> Batch:
    """Return the samples on which a model is measured, always the same, from all over a file that may be sorted."""
    size = min(_PROBE_ROWS, len(rows))
    chosen = torch.arange(size) * len(rows) // size
    return Batch(rows[chosen], chosen)


def is_costly_epoch(epoch: int, epochs: int) -> bool:
    """Whether the costly metrics are measured after this epoch, counted from 1.

    >>> [epoch for epoch in range(1, 26) if is_costly_epoch(epoch, 25)]
    [3, 6, 9, 12, 15, 18, 21, 24, 25]
    """
    return epoch == epochs or epoch % math.ceil(epochs / _COSTLY_TIMES) == 0


@torch.no_grad()
def measure(model: ContrastiveModel, probe: Batch, *, costly: bool, draws: int) -> dict[str, float]:
    """Return metrics by name; training's random numbers are left as they were.

    Args:
        model: in any state of training.
        probe: the samples to measure on.
        costly: whether ``COSTLY_METRICS`` are measured too.
        draws: of noise, for its information; none of it is measured with 0.
    """
    found = dict.fromkeys(METRICS, math.nan)
    noise = model.noise
    with evaluating(model):
        if noise is not None:
            found.update(measure_noise(noise.relative_scale(probe.x), noise.feature_scale > 0)._asdict())
        if not costly:
            return found
        embedding = measure_embedding(model.method.embed(probe.x))
    found.update(effective_rank=embedding.effective_rank, spread=embedding.spread)
    if not draws or len(probe.x) < 2:
        return found
    with suppress(UserError):  # of losses that are not finite: the next step, or the model's health, has more to say
        few = Batch(probe.x[:_PROBE_IMAGES], probe.rows[:_PROBE_IMAGES]) if probe.x.ndim == 4 else probe
        information = information_in_views(model, few, draws=draws)
        found.update(
            task_entropy=information.task_entropy.value,
            conditional_entropy=information.conditional_entropy.value,
            information=information.exact.value,
            information_error=information.exact.error,
            plug_in=information.plug_in.value,
            plug_in_error=information.plug_in.error,
        )
    return found


@torch.no_grad()
def information_in_views(model: ContrastiveModel, batch: Batch, *, draws: int) -> InformationEstimate:
    """Measure what the model's views, learned or predefined, tell about its task; the caller's random state is kept."""
    with kept_randomness(batch.x.device), evaluating(model):
        torch.manual_seed(0)
        losses = torch.stack([model.look(batch).losses for _ in range(draws)], dim=1)  # (m, K)
        return measure_information(model.clean_losses(batch), losses)


@torch.no_grad()
def model_health(model: ContrastiveModel, rows: Rows, *, contrast: float, batch_size: int) -> list[HealthFlag]:
    """Return what is wrong with a trained model; noise that is not learned has nothing to answer for.

    Args:
        model: after training.
        rows: the training rows.
        contrast: the mean of ℓ over the last epoch.
        batch_size: of training, which decides the loss of mere guessing.
    """
    probe = probe_batch(rows)
    x = probe.x.to(next(model.parameters()).device)
    noise = model.noise if model.objective.learns_noise else None
    with evaluating(model):
        return check_health(
            noise=None if noise is None else measure_noise(noise.relative_scale(x), noise.feature_scale > 0),
            embedding=measure_embedding(model.method.embed(x)),
            loss=contrast,
            loss_floor=model.method.guessing_loss(batch_size),
            least_loss=model.method.least_loss,
        )
