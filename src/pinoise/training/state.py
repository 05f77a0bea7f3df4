"""What a checkpoint holds: weights, optimiser, random numbers, history and the place in the epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from pinoise.errors import UserError
from pinoise.training.checkpoint import save_checkpoint

# The purposes of random numbers, see seed_of.
BUILDING, TRAINING = 0, 1


class Record(NamedTuple):
    """One line of the history: how things stand after an epoch."""

    epoch: int
    step: int
    loss: float  # mean over the epoch
    metrics: dict[str, float]  # by the names of ``METRICS``; nan where one does not apply or was not measured
    seconds: float  # since training began, over all sittings


@dataclass
class Progress:
    """Where training stands, apart from the weights."""

    step: int = 0
    seconds: float = 0.0
    loss_sum: Tensor = field(default_factory=lambda: torch.zeros(2))  # of loss and contrast, this epoch
    history: list[Record] = field(default_factory=list)


def seed_of(seed: int, purpose: int, rank: int = 0) -> int:
    """Derive an independent seed for one purpose and process, so that no two share their random numbers.

    >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(0, 2), seed_of(0, 1) == seed_of(1, 1)
    (True, False, False)
    """
    return int(np.random.SeedSequence([seed, purpose, rank]).generate_state(1)[0])


def save_state(fabric: Fabric, folder: Path, model: Any, optimizer: Any, progress: Progress) -> None:
    """Write a checkpoint from which training goes on exactly; every process must call it."""
    save_checkpoint(
        fabric,
        folder,
        {
            "model": model,
            "optimizer": optimizer,
            "precision": fabric.strategy.precision.state_dict(),  # the scale of gradients in 16-mixed
            "random": _per_process(fabric, _random_state(fabric)),
            "step": progress.step,
            "seconds": progress.seconds,
            "loss_sum": _per_process(fabric, progress.loss_sum.detach()),
            "history": [tuple(record) for record in progress.history],
        },
    )


def load_state(fabric: Fabric, path: Path, model: Any, optimizer: Any) -> Progress:
    """Restore weights, optimiser and random numbers in place, and return where training stood."""
    rest = fabric.load(path, {"model": model, "optimizer": optimizer}, weights_only=True)
    if len(rest["random"]) != fabric.world_size:
        raise UserError(
            f"{path} was written by {len(rest['random'])} processes and this run has {fabric.world_size}: "
            "resume with the same number."
        )
    if rest["precision"]:
        fabric.strategy.precision.load_state_dict(rest["precision"])
    _set_random_state(fabric, rest["random"][fabric.global_rank])
    return Progress(
        step=rest["step"],
        seconds=rest["seconds"],
        loss_sum=rest["loss_sum"][fabric.global_rank],
        history=[Record(*line) for line in rest["history"]],
    )


def _per_process(fabric: Fabric, tensor: Tensor) -> Tensor:
    """Return one row per process, where all_gather would add no dimension for a single one."""
    gathered: Any = fabric.all_gather(tensor)
    rows: Tensor = gathered.reshape(fabric.world_size, -1).cpu()
    return rows


def _random_state(fabric: Fabric) -> Tensor:
    state = torch.get_rng_state()
    if fabric.device.type == "cuda":
        state = torch.cat([state, torch.cuda.get_rng_state(fabric.device)])
    if fabric.device.type == "mps":
        state = torch.cat([state, torch.mps.get_rng_state().cpu()])
    return state


def _set_random_state(fabric: Fabric, state: Tensor) -> None:
    size = len(torch.get_rng_state())
    torch.set_rng_state(state[:size].clone())  # a view into other processes' states would crash it
    if fabric.device.type == "cuda":
        torch.cuda.set_rng_state(state[size:].clone(), fabric.device)
    if fabric.device.type == "mps":
        torch.mps.set_rng_state(state[size:].clone())
