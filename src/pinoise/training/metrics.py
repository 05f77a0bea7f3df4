"""Measurements during training: the noise, the embedding, the information in the noise, and the loss of held-out rows.

Rows that training does not see end it early, without labels, when their loss no longer falls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from pinoise.choices import MANY_ROWS
from pinoise.data.rows import Rows
from pinoise.errors import UserError
from pinoise.information import (
    HealthFlag,
    InformationEstimate,
    NoiseMetrics,
    check_health,
    measure_embedding,
    measure_information,
    measure_noise,
)
from pinoise.modes import HOLDING_OUT, Randomness, seed_of
from pinoise.networks import evaluating
from pinoise.noise import PiNoise
from pinoise.training.callbacks import Record
from pinoise.training.config import TrainingSettings
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch

# Metrics of learned noise, measured after every epoch; nan without learned noise.
NOISE_METRICS = NoiseMetrics._fields

# Metrics measured at most about ten times in a run, always after the last epoch; nan after the other epochs.
COSTLY_METRICS = (
    *("effective_rank", "spread", "task_entropy", "conditional_entropy"),
    *("information", "information_error", "plug_in", "plug_in_error"),
)

# The mean of ℓ over rows that training does not see; nan unless early stopping holds some out.
HELD_OUT = "held_out"

# All metrics of a record besides the loss. ``contrast`` is the mean of ℓ, without the terms of the objective.
METRICS = ("contrast", HELD_OUT, *NOISE_METRICS, *COSTLY_METRICS)

_PROBE_ROWS = 256
_PROBE_IMAGES = 64  # for measurements that take many passes through an image network
_COSTLY_TIMES = 10
_COSTLY_STEPS = 50  # between two of them, as one takes as long as four steps of training
_FEWEST_TIMES = 3  # in a short run, so that there is a curve


def probe_batch(rows: Rows) -> Batch:
    """Return the samples on which a model is measured: always the same, and evenly spaced, as files may be sorted."""
    size = min(_PROBE_ROWS, len(rows))
    chosen = torch.arange(size) * len(rows) // size
    return Batch(rows[chosen], chosen)


def is_costly_epoch(epoch: int, epochs: int, *, steps: int) -> bool:
    """Whether the costly metrics are measured after this epoch, counted from 1.

    Args:
        epoch: the epoch.
        epochs: how many there will be.
        steps: in an epoch.

    >>> [epoch for epoch in range(1, 26) if is_costly_epoch(epoch, 25, steps=100)]
    [3, 6, 9, 12, 15, 18, 21, 24, 25]
    >>> [epoch for epoch in range(1, 26) if is_costly_epoch(epoch, 25, steps=7)]
    [8, 16, 24, 25]
    >>> [epoch for epoch in range(1, 26) if is_costly_epoch(epoch, 25, steps=1)]
    [9, 18, 25]
    """
    spaced = min(math.ceil(_COSTLY_STEPS / steps), math.ceil(epochs / _FEWEST_TIMES))
    apart = max(math.ceil(epochs / _COSTLY_TIMES), spaced)
    return epoch == epochs or epoch % apart == 0


@torch.no_grad()
def measure(model: ContrastiveModel, probe: Batch, *, costly: bool, draws: int) -> dict[str, float]:
    """Return metrics by name. Nothing is drawn from the random numbers of training.

    Args:
        model: the model, at any point of training.
        probe: the samples to measure on.
        costly: whether ``COSTLY_METRICS`` are measured too.
        draws: the number of draws of noise for its information; 0 does not measure it.
    """
    found = dict.fromkeys(METRICS, math.nan)
    noise = model.noise
    with evaluating(model):
        if noise is not None:
            found.update(_noise_metrics(noise, probe.x)._asdict())
        if not costly:
            return found
        embedding = measure_embedding(model.method.embed(probe.x))
    found.update(effective_rank=embedding.effective_rank, spread=embedding.spread)
    if not draws or len(probe.x) < 2:
        return found
    with suppress(UserError):  # losses that are not finite; the loop or the health check reports them
        few = Batch(probe.x[:_PROBE_IMAGES], probe.rows[:_PROBE_IMAGES]) if probe.x.ndim == 4 else probe
        estimates = information_in_views(model, few, draws=draws)
        found |= {name: getattr(estimates, name).value for name in ("task_entropy", "conditional_entropy")}
        for name, estimate in (("information", estimates.exact), ("plug_in", estimates.plug_in)):
            found |= {name: estimate.value, f"{name}_error": estimate.error}
    return found


def _noise_metrics(noise: PiNoise, x: Tensor) -> NoiseMetrics:
    return measure_noise(noise.by_column(noise.relative_scale(x)), noise.by_column(noise.feature_scale) > 0)


@torch.no_grad()
def information_in_views(model: ContrastiveModel, batch: Batch, *, draws: int) -> InformationEstimate:
    """Measure the information in the model's views, learned or predefined. The draws are always the same."""
    random = Randomness(0)
    batch = batch._replace(random=random)
    with model.drawing_from(random), evaluating(model):
        losses = torch.stack([model.look(batch).losses for _ in range(draws)], dim=1)  # (m, K)
        return measure_information(model.clean_losses(batch), losses)


@torch.no_grad()
def model_health(model: ContrastiveModel, rows: Rows, *, contrast: float, batch_size: int) -> list[HealthFlag]:
    """Return the health flags of a trained model. Only learned noise is judged.

    Args:
        model: the trained model.
        rows: the training rows.
        contrast: the mean of ℓ over the last epoch.
        batch_size: the batch size of training, which decides the loss of guessing.
    """
    probe = probe_batch(rows)
    x = probe.x.to(next(model.parameters()).device)
    noise = model.noise if model.objective.learns_noise else None
    with evaluating(model):
        return check_health(
            noise=None if noise is None else _noise_metrics(noise, x),
            embedding=measure_embedding(model.method.embed(x)),
            loss=contrast,
            loss_floor=model.method.guessing_loss(batch_size),
            least_loss=model.method.least_loss,
        )


_SHARE = 0.1  # of the rows, held out for early stopping
_MOST = 1024  # rows held out
_LEAST = 2  # rows held out: samples that can be told apart


def held_out_rows(n_rows: int, settings: TrainingSettings) -> Tensor:
    """Return the rows that training does not see, in order. Without ``patience`` there are none.

    They are a tenth, at most 1,024 rows. The choice depends on the seed alone, so a resumed run has the same.

    >>> len(held_out_rows(100, TrainingSettings(patience=5))), len(held_out_rows(100, TrainingSettings()))
    (10, 0)
    """
    if settings.patience is None:
        return torch.arange(0)
    size = min(_MOST, int(_SHARE * n_rows))
    if size < _LEAST:
        raise UserError(
            f"patience holds out a tenth of the rows, and {n_rows} rows are too few: give at least "
            f"{int(_LEAST / _SHARE)}, or leave out patience."
        )
    random = np.random.default_rng(seed_of(settings.seed, HOLDING_OUT))
    many = n_rows > MANY_ROWS  # of which no list is made
    chosen = random.choice(n_rows, size, replace=False) if many else random.permutation(n_rows)[:size]
    return torch.from_numpy(np.sort(chosen))


@torch.no_grad()
def held_out_loss(model: ContrastiveModel, batches: Iterable[Batch]) -> Tensor:
    """Return the mean of ℓ over batches, (1,). The draws are the same each time, and none is one of training's."""
    random = Randomness(0)
    with model.drawing_from(random), evaluating(model):
        losses = [model.look(batch._replace(random=random)).losses for batch in batches]
    return torch.cat(losses).mean(dim=0, keepdim=True)


def held_out_losses(history: Iterable[Record]) -> list[float]:
    """Return the loss of the held-out rows after each epoch."""
    return [record.metrics.get(HELD_OUT, math.nan) for record in history]


def has_stalled(losses: Sequence[float], settings: TrainingSettings) -> bool:
    """Whether losses, one of each epoch, have not fallen ``min_improvement`` below their best for ``patience`` epochs.

    They are part of the history, so a resumed run ends where it would have ended.

    >>> losses = [3.0, 2.0, 2.0, 1.9999]
    >>> [has_stalled(losses[:epochs], TrainingSettings(patience=2)) for epochs in range(5)]
    [False, False, False, False, True]
    """
    if settings.patience is None:
        return False
    best, since = math.inf, 0
    for loss in losses:
        best, since = (loss, 0) if loss < best - settings.min_improvement else (best, since + 1)
    return since >= settings.patience


class DivergedError(UserError):
    """The loss or its gradient became nan or infinite."""


@torch.no_grad()
def broken_weights(model: torch.nn.Module) -> list[str]:
    """Return the names of the weights that contain nan or infinite numbers.

    >>> layer = torch.nn.Linear(2, 1)
    >>> _ = layer.bias.data.fill_(math.nan)
    >>> broken_weights(layer)
    ['bias']
    """
    names, weights = zip(*model.named_parameters(), strict=True)
    finite = torch.stack([torch.isfinite(weight).all() for weight in weights]).tolist()  # waits for the device once
    return [name for name, sound in zip(names, finite, strict=True) if not sound]


def has_broken_moments(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a moment is nan or infinite. The square of a gradient above 2e19 is, although the weights stay finite."""
    moments = [tensor for state in optimizer.state.values() for tensor in state.values()]
    return not all(torch.stack([torch.isfinite(moment).all() for moment in moments]).tolist())


def diverged(
    model: ContrastiveModel, step: int, settings: TrainingSettings, *, what: str = "the loss"
) -> DivergedError:
    """Return the error for a loss, gradients or weights that are no numbers."""
    broken = broken_weights(model)
    noise_broke = broken and all(name.startswith("pairing.") for name in broken)
    return DivergedError(
        f"{what} became nan or infinite by step {step}"
        f"{'; the noise generator failed first' if noise_broke else ''}: "
        f"lower the learning rate (now {settings.learning_rate:g}) or raise the temperature."
    )
