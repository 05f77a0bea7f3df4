"""Checkpoints: what they hold, how they survive a kill at any moment, and how they are checked before use."""

from __future__ import annotations

import copy
import io
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn
from torch.optim import Optimizer

from pinoise.errors import UserError
from pinoise.files import check_is_file, settle, sync
from pinoise.modes import TRAINING, Randomness, seed_of
from pinoise.networks import check_finite_weights
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
    loss_sum: Tensor = field(default_factory=lambda: torch.zeros(2))  # sums of loss and contrast over this epoch
    history: list[Record] = field(default_factory=list)
    optimizer: Optimizer | None = None  # with its moments
    random: Randomness | None = None  # what training draws from

    def resume(self, per_epoch: int, optimizer: Optimizer) -> int:
        """Go on in memory after the last whole epoch, with the moments so far. Return the number of epochs."""
        self.step, self.loss_sum = len(self.history) * per_epoch, torch.zeros(2)
        if self.optimizer is not None:
            _load_moments(optimizer, copy.deepcopy(self.optimizer.state_dict()["state"]))
        self.optimizer = optimizer
        return len(self.history)

    def copy(self) -> Progress:
        """Return a state that can go on while this one stays."""
        return replace(self, history=list(self.history), random=copy.deepcopy(self.random))


class RunIdentity(NamedTuple):
    """What tells the checkpoints of a run from those of another: its settings as JSON, and its data's fingerprint."""

    settings: str = "{}"
    data: str = ""


def _dense(tensor: Tensor) -> Tensor:
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise ValueError("not a tensor of numbers")
    return tensor


Dense = Annotated[Tensor, AfterValidator(_dense)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)


class Moments(_Strict):
    """What Adam keeps for a weight."""

    step: Dense
    exp_avg: Dense
    exp_avg_sq: Dense


class ParameterGroup(_Strict, extra="ignore"):
    """The numbers of the weights that share a learning rate. The rate itself follows from the settings."""

    params: list[int]


class Adam(_Strict):
    """The state of the optimiser."""

    state: dict[int, Moments]
    param_groups: list[ParameterGroup]


class Stored(_Strict):
    """The content of a checkpoint."""

    settings: str
    data: str
    model: dict[str, Dense]
    optimizer: Adam
    precision: dict[str, int | float]  # the scale of gradients in 16-mixed
    random: Dense  # (processes, bytes)
    step: int = Field(ge=1)
    seconds: float = Field(ge=0, allow_inf_nan=False)
    loss_sum: Dense  # (processes, 2)
    history: list[tuple[int, int, float, dict[str, float], float]]


class Expected(NamedTuple):
    """What a checkpoint must fit to be used."""

    model: nn.Module
    optimizer: Optimizer | None = None
    identity: RunIdentity | None = None
    per_epoch: int | None = None  # the steps in an epoch


class Checkpoint(NamedTuple):
    """A checkpoint that can be used."""

    path: Path
    stored: Stored


class DamagedError(UserError):
    """A checkpoint that cannot be used. The message goes on after its name."""


class DifferentError(DamagedError):
    """A checkpoint of other settings. The message ends before its name."""


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


def read_checkpoint(path: Path) -> Stored:
    """Read a checkpoint and check its content. Its zip archive has checksums against damage, which torch ignores.

    Whatever cannot be read raises ``DamagedError``. Nothing in the file is executed.
    """
    if not path.is_file():
        raise DamagedError("is not a file")
    check_is_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if (part := archive.testzip()) is not None:
                raise DamagedError(f"is damaged ({part} does not match its checksum)")
        return Stored.model_validate(torch.load(path, map_location="cpu", weights_only=True))
    except (MemoryError, DamagedError):
        raise
    except ValidationError as error:
        first = error.errors()[0]
        raise DamagedError(
            f"is damaged (it has no sound field {'.'.join(map(str, first['loc'][:2])) or 'at all'})"
        ) from None
    except Exception as error:  # the readers raise errors of any kind for what they do not know
        raise DamagedError(f"is damaged (it cannot be read: {type(error).__name__})") from None


def check_fit(stored: Stored, expected: Expected) -> None:
    """Refuse a checkpoint that does not fit, before anything of it is applied."""
    if expected.identity is not None:
        _check_identity(stored, expected.identity)
    _check_weights(stored.model, expected.model.state_dict())
    if expected.optimizer is not None and not _is_state_of(stored.optimizer, expected.optimizer):
        raise DamagedError("does not fit the model, whose optimiser differs")
    if stored.random.ndim != 2 or not len(stored.random) or not all(map(Randomness.is_state, stored.random)):
        raise DamagedError("is damaged (it has no sound field random)")
    if stored.loss_sum.shape != (len(stored.random), 2) or not bool(stored.loss_sum.isfinite().all()):
        raise DamagedError("is damaged (it has no sound field loss_sum)")
    if expected.per_epoch is not None:
        steps = expected.per_epoch
        ends, epochs = [line[:2] for line in stored.history], stored.step // steps
        if len(ends) != epochs or ends != [(n, n * steps) for n in range(1, epochs + 1)]:
            raise DamagedError("is damaged (it has no sound field history)")


def _check_identity(stored: Stored, identity: RunIdentity) -> None:
    """Refuse a checkpoint of other settings, but for those that may change, or of other data."""
    try:
        change = forbidden_change(identity.settings, stored.settings)
    except (ValueError, RecursionError):
        raise DamagedError("is damaged (it has no sound field settings)") from None
    if change is not None:
        raise DifferentError(change)
    if stored.data != identity.data:
        raise DamagedError("belongs to a run on other data")


def _check_weights(stored: dict[str, Tensor], built: dict[str, Tensor]) -> None:
    strange = sorted(stored.keys() ^ built.keys())
    strange += [
        name
        for name, tensor in stored.items()
        if name in built and (tensor.shape != built[name].shape or tensor.dtype != built[name].dtype)
    ]
    if strange:
        raise DamagedError(f"does not fit the model, which differs in {strange[0]!r}")
    try:
        check_finite_weights(stored, where="it", built=built)
    except UserError as error:
        raise DamagedError(f"cannot be used ({str(error).partition(':')[0]})") from None


def _is_state_of(stored: Adam, optimizer: Optimizer) -> bool:
    """Whether stored moments are those of an Adam over the same weights."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    numbers = [group["params"] for group in optimizer.state_dict()["param_groups"]]
    return [group.params for group in stored.param_groups] == numbers and all(
        0 <= number < len(weights)
        and all(bool(moment.isfinite().all()) for _, moment in moments)
        and moments.step.shape == ()
        and moments.exp_avg.shape == moments.exp_avg_sq.shape == weights[number].shape
        for number, moments in stored.state.items()
    )


def find_checkpoint(folder: Path, expected: Expected) -> tuple[Checkpoint | None, str | None]:
    """Return the newest checkpoint that can be used, if any, and a sentence about a newer one that cannot."""
    faults: list[str] = []
    differences: list[str] = []
    for path in (folder / LAST, folder / PREVIOUS):
        if not path.exists():
            continue
        try:
            check_fit(stored := read_checkpoint(path), expected)
        except DifferentError as change:
            differences.append(f"{change} {path.name}")
            faults.append(f"checkpoint {path.name} is of another run ({change} it)")
            continue
        except DamagedError as fault:
            faults.append(f"checkpoint {path.name} {fault}")
            continue
        complaint = f"{faults[0]}, so it was skipped: {path.name} is used." if faults else None
        return Checkpoint(path, stored), complaint
    if differences:
        raise UserError(
            f"{differences[0]}: restore the setting, or start a new run; only {', '.join(MAY_CHANGE)} may change."
        )
    if faults:
        raise UserError(f"{folder} has no intact checkpoint: {'; '.join(faults)}. Start the run again in a new folder.")
    return None, None


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
    try:
        check_fit(stored := read_checkpoint(path), Expected(model, optimizer))
    except DamagedError as fault:
        raise UserError(f"{path} {fault}.") from None
    model.load_state_dict(stored.model)
    _load_moments(optimizer, {number: dict(moments) for number, moments in stored.optimizer.state.items()})
    if machine.scaler is not None and stored.precision.keys() == machine.scaler.state_dict().keys():
        machine.scaler.load_state_dict(stored.precision)
    if len(stored.random) == machine.size:
        random.restore(stored.random[machine.rank], machine.device)
        progress.loss_sum = stored.loss_sum[machine.rank]
    else:  # not from the start, whose numbers were drawn already
        random.reseed(seed_of(random.seed, TRAINING, stored.step))
        progress.loss_sum = stored.loss_sum.mean(dim=0)
    progress.step, progress.seconds = stored.step, stored.seconds
    progress.history = [Record(*line) for line in stored.history]


def _load_moments(optimizer: Optimizer, moments: dict[int, Any]) -> None:
    """Give an optimiser moments by the numbers of its weights. Its learning rates stay."""
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
