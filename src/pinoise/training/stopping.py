"""Early stopping without labels: rows that training does not see, and when their loss no longer falls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from pinoise.choices import MANY_ROWS
from pinoise.errors import UserError
from pinoise.modes import Randomness
from pinoise.networks import evaluating
from pinoise.training.config import TrainingSettings
from pinoise.training.device import HOLDING_OUT, seed_of
from pinoise.training.metrics import HELD_OUT
from pinoise.training.model import ContrastiveModel
from pinoise.training.order import Kept
from pinoise.training.progress import Record
from pinoise.views import Batch

_SHARE = 0.1
_MOST = 1024
_LEAST = 2  # samples that can be told apart


def split_rows(n_rows: int, settings: TrainingSettings) -> tuple[Kept, Tensor]:
    """Return the rows to train on and the rows to hold out, both in order. Without ``patience``, all are trained on.

    A tenth is held out, at most 1,024 rows. The choice depends on the seed alone, so a resumed run has the same.

    >>> kept, held_out = split_rows(100, TrainingSettings(patience=5))
    >>> len(kept), len(held_out), len(split_rows(100, TrainingSettings())[1])
    (90, 10, 0)
    """
    if settings.patience is None:
        return Kept(n_rows, torch.arange(0)), torch.arange(0)
    size = min(_MOST, int(_SHARE * n_rows))
    if size < _LEAST:
        raise UserError(
            f"patience holds out a tenth of the rows, and {n_rows} rows are too few: give at least "
            f"{int(_LEAST / _SHARE)}, or leave out patience."
        )
    random = np.random.default_rng(seed_of(settings.seed, HOLDING_OUT))
    many = n_rows > MANY_ROWS  # of which no list is made
    chosen = random.choice(n_rows, size, replace=False) if many else random.permutation(n_rows)[:size]
    held_out = torch.from_numpy(np.sort(chosen))
    return Kept(n_rows, held_out), held_out


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
