"""Checkpoints: what they hold, how they survive a kill at any moment, and how they are checked before use."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from pinoise.errors import UserError
from pinoise.files import settle
from pinoise.randomness import Randomness
from pinoise.training.progress import Record

LAST = "last.ckpt"
PREVIOUS = "previous.ckpt"


@dataclass
class Progress:
    """The state of training apart from the weights."""

    step: int = 0
    seconds: float = 0.0
    loss_sum: Tensor = field(default_factory=lambda: torch.zeros(2))  # sums of loss and contrast over this epoch
    history: list[Record] = field(default_factory=list)


def save_checkpoint(fabric: Fabric, folder: Path, state: dict[str, Any]) -> None:
    """Write ``last.ckpt`` and keep the one before it as ``previous.ckpt``."""
    partial = folder / "partial.ckpt"
    try:
        if fabric.is_global_zero:
            partial.unlink(missing_ok=True)  # a link of this name would be written through
        fabric.save(partial, state)
    except (OSError, RuntimeError) as error:  # torch's writer raises RuntimeError on a full disk
        partial.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or "the file could not be written"
        raise UserError(
            f"a checkpoint cannot be written to {folder} ({reason}): free some space and continue with --resume; "
            "earlier checkpoints are kept."
        ) from error
    if fabric.is_global_zero:
        last = folder / LAST
        if last.exists():
            last.replace(folder / PREVIOUS)
        settle(partial, last)
    fabric.barrier()


def find_checkpoint(folder: Path) -> tuple[Path | None, str | None]:
    """Return the newest intact checkpoint, if any, and a sentence about a damaged one that was skipped."""
    damaged = None
    for path in (folder / LAST, folder / PREVIOUS):
        if not path.exists():
            continue
        fault = damage(path)
        if fault is None:
            return path, damaged
        damaged = f"checkpoint {path.name} is damaged ({fault}) and was skipped."
    if damaged is not None:
        raise UserError(f"{folder} has no intact checkpoint: {damaged} Start the run again in a new folder.")
    return None, None


def damage(path: Path) -> str | None:
    """Return what is wrong with a checkpoint file, or None if every record matches its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        return str(error) or type(error).__name__
    return None if bad is None else f"record {bad} does not match its checksum"


def save_state(
    fabric: Fabric, folder: Path, model: Any, optimizer: Any, progress: Progress, random: Randomness
) -> None:
    """Write a checkpoint from which training resumes exactly. Every process must call it."""
    save_checkpoint(
        fabric,
        folder,
        {
            "model": model,
            "optimizer": optimizer,
            "precision": fabric.strategy.precision.state_dict(),  # the scale of gradients in 16-mixed
            "random": _per_process(fabric, random.state(fabric.device)),
            "step": progress.step,
            "seconds": progress.seconds,
            "loss_sum": _per_process(fabric, progress.loss_sum.detach()),
            "history": [tuple(record) for record in progress.history],
        },
    )


def load_state(fabric: Fabric, path: Path, model: Any, optimizer: Any, random: Randomness) -> Progress:
    """Restore weights, optimiser and random numbers in place, and return the rest of the state."""
    try:
        rest = fabric.load(path, {"model": model, "optimizer": optimizer}, weights_only=True)
    except (RuntimeError, ValueError) as error:  # torch's errors for weights and for an optimiser's state
        why = str(error).replace("\n\t", " ").strip().rstrip(".")
        raise UserError(f"{path} does not fit the model; a part of the model has changed: {why}.") from None
    if len(rest["random"]) != fabric.world_size:
        raise UserError(
            f"{path} was written by {len(rest['random'])} processes and this run has {fabric.world_size}: "
            "resume with the same number."
        )
    if rest["precision"]:
        fabric.strategy.precision.load_state_dict(rest["precision"])
    random.restore(rest["random"][fabric.global_rank], fabric.device)
    return Progress(
        step=rest["step"],
        seconds=rest["seconds"],
        loss_sum=rest["loss_sum"][fabric.global_rank],
        history=[Record(*line) for line in rest["history"]],
    )


def _per_process(fabric: Fabric, tensor: Tensor) -> Tensor:
    """Return one row per process. all_gather alone adds no dimension for a single process."""
    gathered: Any = fabric.all_gather(tensor)
    rows: Tensor = gathered.reshape(fabric.world_size, -1).cpu()
    return rows
