"""Checkpoints: what they hold, how they survive a kill at any moment, and how they are checked before use."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pinoise.errors import UserError
from pinoise.files import check_is_file, settle, sync
from pinoise.modes import TRAINING, Randomness, seed_of
from pinoise.networks.weights import misfit
from pinoise.training.callbacks import Record
from pinoise.training.changes import MAY_CHANGE, forbidden_change

if TYPE_CHECKING:
    from pinoise.training.loop import Machine

LAST = "last.ckpt"
PREVIOUS = "previous.ckpt"
DAMAGED = "damaged.ckpt"


@dataclass
class Progress:
    """The state of training apart from the weights."""

    step: int = 0
    seconds: float = 0.0
    loss_sum: Tensor = field(default_factory=partial(torch.zeros, 2))  # sums of loss and contrast over this epoch
    history: list[Record] = field(default_factory=list)


class RunIdentity(NamedTuple):
    """What tells the checkpoints of a run from those of another: its settings as YAML, and its data's fingerprint."""

    settings: str = "{}"
    data: str = ""


class CheckpointContent(NamedTuple):
    """The content of a checkpoint."""

    settings: str
    data: str
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    precision: dict[str, Any]  # the scale of gradients in 16-mixed
    random: Tensor  # (processes, bytes)
    step: int
    seconds: float
    loss_sum: Tensor  # (processes, 2)
    history: list[tuple[int, int, float, dict[str, float], float]]

    @property
    def records(self) -> list[Record]:
        """The history."""
        return [Record(*line) for line in self.history]


class Checkpoint(NamedTuple):
    """A checkpoint that can be used."""

    path: Path
    stored: CheckpointContent
    complaint: str | None  # a sentence about a newer one that cannot


class DamagedError(UserError):
    """A checkpoint that cannot be used."""


def save_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Write ``last.ckpt`` and keep the one before it as ``previous.ckpt``."""
    unfinished = folder / "partial.ckpt"
    try:
        unfinished.unlink(missing_ok=True)  # a link of this name would be written through
        torch.save(state, content := io.BytesIO())  # torch's own writer does not say why a disk takes no more
        unfinished.write_bytes(content.getbuffer())
        sync(unfinished)  # on disk before the last one moves
        last = folder / LAST
        if last.exists():
            last.replace(folder / PREVIOUS)
        settle(unfinished, last)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise UserError(
            f"a checkpoint cannot be written to {folder} ({error.strerror}): free some space and continue with "
            "--resume; earlier checkpoints are kept."
        ) from error


def read_checkpoint(path: Path) -> CheckpointContent:
    """Read a checkpoint. Its zip archive has checksums against damage, which torch ignores.

    Whatever cannot be read raises ``DamagedError``. Nothing in the file is executed.
    """
    try:
        check_is_file(path)
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                raise zipfile.BadZipFile
        return CheckpointContent(**torch.load(path, map_location="cpu", weights_only=True))
    except MemoryError:
        raise
    except Exception as error:  # the readers raise errors of any kind for what they do not know
        raise DamagedError(f"checkpoint {path.name} is damaged (it cannot be read: {type(error).__name__})") from None


def check_fit(path: Path, model: nn.Module, identity: RunIdentity) -> CheckpointContent:
    """Read a checkpoint. Refuse one of other settings, but for those that may change, or of other data."""
    stored = read_checkpoint(path)
    if (change := forbidden_change(identity.settings, stored.settings)) is not None:
        raise DamagedError(f"checkpoint {path.name} is of another run ({change} it)")
    if stored.data != identity.data:
        raise DamagedError(f"checkpoint {path.name} belongs to a run on other data")
    if (why := misfit(model.state_dict(), stored.model)) is not None:
        raise DamagedError(f"checkpoint {path.name} does not fit the model ({why})")
    return stored


def find_checkpoint(folder: Path, model: nn.Module, identity: RunIdentity) -> Checkpoint | None:
    """Return the newest checkpoint that can be used, if any."""
    faults: list[str] = []
    for path in (folder / LAST, folder / PREVIOUS):
        if not path.exists():
            continue
        try:
            stored = check_fit(path, model, identity)
        except DamagedError as fault:
            faults.append(str(fault))
            continue
        complaint = f"{faults[0]}, so it was skipped: {path.name} is used." if faults else None
        return Checkpoint(path, stored, complaint)
    if faults:
        raise UserError(
            f"{folder} has no checkpoint to go on from: {'; '.join(faults)}. Restore what was changed, or start the "
            f"run again in a new folder; only {', '.join(MAY_CHANGE)} may change."
        )
    return None


def save_state(
    machine: Machine,
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    progress: Progress,
    random: Randomness,
    identity: RunIdentity | None = None,
) -> None:
    """Write a checkpoint from which training resumes exactly. Every process must call it, and hears of a failure."""
    state = {
        **(identity or RunIdentity())._asdict(),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "precision": {} if machine.scaler is None else machine.scaler.state_dict(),
        "random": machine.gather(random.state(machine.device)),
        "step": progress.step,
        "seconds": progress.seconds,
        "loss_sum": machine.gather(progress.loss_sum.detach()),
        "history": [tuple(record) for record in progress.history],
    }
    machine.first(partial(save_checkpoint, folder, state))


def load_state(
    machine: Machine, path: Path, model: nn.Module, optimizer: Optimizer, random: Randomness, progress: Progress
) -> None:
    """Restore weights, moments, random numbers and progress in place.

    Learning rates and the like are those of ``optimizer``: they follow from the settings. Another number of processes
    than wrote the checkpoint takes the same steps on the same rows, but draws new random numbers.
    """
    stored = read_checkpoint(path)
    model.load_state_dict(stored.model)
    moments = {"state": stored.optimizer["state"], "param_groups": optimizer.state_dict()["param_groups"]}
    optimizer.load_state_dict(moments)
    if machine.scaler is not None and stored.precision.keys() == machine.scaler.state_dict().keys():
        machine.scaler.load_state_dict(stored.precision)
    if len(stored.random) == machine.size:
        random.restore(stored.random[machine.rank], machine.device)
        progress.loss_sum = stored.loss_sum[machine.rank]
    else:  # not from the start, whose numbers were drawn already
        random.reseed(seed_of(random.seed, TRAINING, stored.step))
        progress.loss_sum = stored.loss_sum.mean(dim=0)
    progress.step, progress.seconds = stored.step, stored.seconds
    progress.history = stored.records
