"""The training loop, one readable function, and the rows of its steps, gathered ahead of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pinoise.choices import MANY_ROWS, PRECISION, PrecisionName
from pinoise.data.rows import Rows
from pinoise.errors import UserError, brief, unknown_choice
from pinoise.modes import TRAINING, Randomness, flushed_denormals, keep_freed_memory, seed_of
from pinoise.training.callbacks import Interrupted, Record, Reporter
from pinoise.training.checkpoint import Progress, RunIdentity, load_state, save_state
from pinoise.training.config import TrainingSettings
from pinoise.training.metrics import (
    HELD_OUT,
    broken_weights,
    diverged,
    has_broken_moments,
    has_stalled,
    held_out_loss,
    held_out_losses,
    held_out_rows,
    is_costly_epoch,
    measure,
    probe_batch,
)
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.order import ShuffledBlocks
from pinoise.views import Batch

_CHECK_EVERY = 50  # steps between checks of the loss; each check waits for the device
_AGREE_EVERY = 10  # steps after which several processes can agree to stop
LOWER = {"16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}  # of products, by the name of a precision
T = TypeVar("T")


class Machine:
    """What trains: this process alone, its device, and the precision of its steps.

    ``together.Member`` is the same as one of several processes. What they agree on is said here for one.

    Args:
        device: what it trains on.
        precision: of the training steps.

    >>> machine = Machine(torch.device("cpu"))
    >>> machine.any(True), machine.mean(torch.tensor([2.5, 1.0])), machine.first(lambda: 3)
    (True, [2.5, 1.0], 3)
    """

    rank, size = 0, 1  # of the processes that train together

    def __init__(self, device: torch.device, precision: PrecisionName = PRECISION) -> None:
        self.device = device
        self.scaler = torch.amp.GradScaler(device.type) if precision == "16-mixed" else None
        self._lower = LOWER.get(precision)
        if device.type == "cuda":
            torch.cuda.set_device(device)

    def wrap(self, model: nn.Module) -> nn.Module:
        """Move a model to the device. Return what the steps call."""
        return model.to(self.device)

    def batch(self, rows: Rows, chosen: Tensor, x: Tensor | None = None, random: Randomness | None = None) -> Batch:
        """Return a batch of these rows, or of their samples ``x``, on the device."""
        x = rows[chosen] if x is None else x
        return Batch(x.to(self.device), chosen.to(self.device), random=random)

    def lowered(self) -> AbstractContextManager[object]:
        """Compute in the precision of the steps inside a block."""
        return nullcontext() if self._lower is None else torch.autocast(self.device.type, self._lower)

    def update(self, loss: Tensor, optimizer: Optimizer) -> None:
        """Take a step down the gradient of the loss."""
        optimizer.zero_grad()
        if self.scaler is None:
            loss.backward()
            optimizer.step()
            return
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()

    def average_statistics(self, model: nn.Module) -> None:
        """Average the statistics of batch normalisation over the processes. Every process must call it."""

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in at least one process. All must call it at the same step."""
        return flag

    def mean(self, values: Tensor) -> list[float]:
        """Return the means of numbers over the processes. All must call it at the same step."""
        return [float(value) for value in values.tolist()]

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all processes, stacked, on the CPU. All must call it at the same step."""
        return tensor[None].cpu()

    def first(self, work: Callable[[], T]) -> T:
        """Do some work in the first process alone, and give its result or its error to all processes."""
        return work()


@flushed_denormals()
def train(
    model: ContrastiveModel,
    rows: Rows,
    settings: TrainingSettings,
    *,
    machine: Machine,
    reporter: Reporter,
    checkpoints: Path | None = None,
    identity: RunIdentity | None = None,
    resume_from: Path | None = None,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_epoch: Callable[[Record], bool] = lambda _: False,
) -> list[Record]:
    """Minimise the objective over θ and ψ. Train the model in place and return the history.

    A run that is stopped at any step and resumed from a checkpoint ends with exactly the same weights.

    Args:
        model: the model to train.
        rows: standardised samples.
        settings: epochs, batch size, learning rates, seed and intervals. With ``patience``, training may end earlier.
        machine: device, precision and processes.
        reporter: called at the start, after every step and after every epoch.
        checkpoints: the folder for checkpoints, written every ``settings.checkpoint_every`` steps and at the end.
        identity: the run that checkpoints belong to, written into each.
        resume_from: a checkpoint to resume from.
        progress: the state of training, which is kept up to date, so that it is known after an interrupt. One with a
            history goes on after its last whole epoch.
        should_stop: called after every step. If it returns True, the state is saved and ``Interrupted`` raised. Several
            processes stop together, within ten steps of the first request.
        on_epoch: called after every epoch. If it returns True in any process, training ends there.
    """
    keep_freed_memory()
    held_out = held_out_rows(len(rows), settings)
    per_epoch, share = plan_epoch(len(rows) - len(held_out), settings.batch_size, machine.size)
    wrapped, optimizer = machine.wrap(model), make_optimizer(model, settings, machine.device)
    progress = progress or Progress()
    earlier = len(progress.history)
    progress.step = earlier * per_epoch
    random = Randomness(seed_of(settings.seed, TRAINING, machine.rank))
    if earlier:  # not from the start, whose numbers were drawn already
        random.reseed(seed_of(random.seed, TRAINING, progress.step))
    if resume_from is not None:
        load_state(machine, resume_from, model, optimizer, random, progress)
    unseen = held_out_losses(progress.history[earlier:])
    last_step = progress.step if has_stalled(unseen, settings) else per_epoch * settings.epochs
    loss_sum = progress.loss_sum.to(machine.device)
    reporter.start(total_steps=last_step, done_steps=progress.step)
    probe = machine.batch(rows, probe_batch(rows).rows)
    began = time.perf_counter() - progress.seconds
    steps, plan = range(progress.step, last_step), {"seed": settings.seed, "per_epoch": per_epoch, "share": share}
    gathered = upcoming(rows, held_out, steps, **plan, processes=machine.size, rank=machine.rank)

    for step, (chosen, x) in zip(steps, gathered, strict=True):
        epoch, position = divmod(step, per_epoch)
        batch = machine.batch(rows, chosen, x, random=random)

        with machine.lowered():
            loss, losses = wrapped(batch)
        machine.update(loss.float(), optimizer)
        with model.drawing_from(random):
            model.after_step(step, last_step)
        machine.average_statistics(model)

        done, ends = step + 1, step + 1 == last_step
        loss_sum = torch.stack([loss.detach().float(), losses.float().mean()]) + (loss_sum if position else 0)
        ends_epoch, wants_stop = position + 1 == per_epoch, should_stop()
        stops = (machine.size == 1 or done % _AGREE_EVERY == 0) and machine.any(wants_stop)
        saves = done % settings.checkpoint_every == 0 or stops
        if ends_epoch or saves or done % _CHECK_EVERY == 0:
            sound = math.isfinite(float(loss_sum.sum())) and not ((saves or ends_epoch) and broken_weights(model))
            if machine.any(not sound):
                raise diverged(model, done, settings)
        progress.step, progress.seconds = done, time.perf_counter() - began
        if ends_epoch:
            mean_loss, contrast = (total / per_epoch for total in machine.mean(loss_sum))
            if len(held_out):
                parts = held_out.tensor_split(max(1, len(held_out) // settings.batch_size))
                unseen += machine.mean(held_out_loss(model, (machine.batch(rows, part) for part in parts)))
                ends = ends or has_stalled(unseen, settings)
            costly = ends or is_costly_epoch(epoch + 1, settings.epochs, steps=per_epoch)
            metrics = measure(model, probe, costly=costly, draws=settings.information_draws)
            metrics |= {"contrast": contrast, HELD_OUT: unseen[-1] if len(held_out) else math.nan}
            progress.history.append(Record(epoch + 1, done, mean_loss, metrics, round(progress.seconds, 3)))
            reporter.epoch(progress.history[-1])
            ends = machine.any(on_epoch(progress.history[-1])) or ends
        reporter.step(done)
        if checkpoints is not None and (saves or ends):
            if machine.any(has_broken_moments(optimizer)):  # with which nothing could go on
                raise diverged(model, done, settings, what="the gradient")
            progress.loss_sum = loss_sum
            save_state(machine, checkpoints, model, optimizer, progress, random, identity)
        if ends:
            break
        if stops:
            raise Interrupted(done)
    return progress.history


def plan_epoch(n_rows: int, batch_size: int, processes: int = 1) -> tuple[int, int]:
    """Return the steps in an epoch and the rows of a process in each. Rows left over wait for the next shuffle.

    Processes share a batch, so the steps and their rows do not depend on the number of processes. Fewer rows than a
    batch are all in one batch.

    >>> plan_epoch(1000, 256), plan_epoch(1000, 256, processes=2), plan_epoch(100, 256)
    ((3, 256), (3, 128), (1, 100))
    """
    for found, what in ((n_rows, "rows"), (batch_size, "rows in a batch")):
        if found < 2 * processes:
            raise UserError(f"{found} {what} for {processes} process(es): contrast needs at least 2 rows in each.")
    if batch_size <= n_rows and (over := batch_size % processes):
        raise UserError(
            f"training.batch_size is {batch_size}, which {processes} processes cannot share equally: use "
            f"{batch_size - over} or {batch_size - over + processes}."
        )
    share = min(batch_size, n_rows) // processes
    return n_rows // (share * processes), share


def make_optimizer(model: ContrastiveModel, settings: TrainingSettings, device: torch.device) -> torch.optim.Adam:
    """Return fused Adam over θ and ψ, with a separate learning rate for ψ. Frozen weights are left out."""
    groups = [] if model.noise is None else model.noise.param_groups(settings.learning_rate)
    if settings.noise_learning_rate is not None:
        groups = [{**group, "lr": settings.noise_learning_rate} for group in groups]
    of_psi = {id(parameter) for group in groups for parameter in group["params"]}
    theta: list[Any] = [p for p in model.parameters() if p.requires_grad and id(p) not in of_psi]
    fused = device.type in ("cpu", "cuda")
    return torch.optim.Adam([{"params": theta}, *groups], lr=settings.learning_rate, fused=fused)


def shuffled_rows(n_rows: int, *, seed: int, epoch: int) -> Tensor:
    """Return the row order of an epoch. It depends on seed and epoch alone, so a resumed run has the same order.

    >>> shuffled_rows(5, seed=0, epoch=3).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n_rows))


def skipping(positions: Tensor, left_out: Tensor) -> Tensor:
    """Return the rows at positions among all rows but a few, in order. They are not listed, because they may be many.

    >>> skipping(torch.tensor([0, 1, 2, 3]), torch.tensor([0, 3]))
    tensor([1, 2, 4, 5])
    """
    if not len(left_out):
        return positions
    before = left_out - torch.arange(len(left_out))  # rows kept before each that is left out
    return positions + torch.searchsorted(before, positions, right=True)


def upcoming(
    rows: Rows, left_out: Tensor, steps: range, *, seed: int, per_epoch: int, share: int, processes: int, rank: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the row numbers of every step and their samples. Rows in files are gathered in a thread, a step ahead.

    Args:
        rows: standardised samples.
        left_out: the numbers, in order, of rows that are not trained on.
        steps: the steps of training.
        seed: of the order.
        per_epoch: steps in an epoch.
        share: rows of a process in a step.
        processes: the number of processes.
        rank: the number of this one.
    """
    kept = len(rows) - len(left_out)
    shuffle: Any = ShuffledBlocks if kept > MANY_ROWS else shuffled_rows
    order = lru_cache(maxsize=1)(partial(shuffle, kept, seed=seed))

    def gather(step: int) -> tuple[Tensor, Tensor]:
        epoch, position = divmod(step, per_epoch)
        first = (position * processes + rank) * share
        chosen = skipping(torch.as_tensor(order(epoch=epoch)[first : first + share]), left_out)
        return chosen, rows[chosen]

    if not getattr(rows, "in_files", False):
        yield from map(gather, steps)
        return
    with ThreadPoolExecutor(max_workers=1) as ahead:
        waiting = [ahead.submit(gather, step) for step in steps[:1]]
        for step in steps:
            found = waiting.pop().result()
            if step + 1 in steps:
                waiting.append(ahead.submit(gather, step + 1))
            yield found


DEVICES = ("auto", "cpu", "cuda", "mps")


def check_device(device: str) -> torch.device:
    """Return what a device in the settings is. Refuse one that this machine does not have.

    >>> check_device("cpu")
    device(type='cpu')
    """
    kind, colon, index = device.partition(":")
    if kind not in DEVICES:
        raise unknown_choice("device", device, DEVICES)
    here = {"auto": True, "cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not here[kind]:
        raise UserError(f"device {device!r} is not available on this machine: use 'cpu' or 'auto'.")
    if colon and kind != "cuda":
        raise UserError(f"device {brief(device)} has an index: only 'cuda' takes one, as in 'cuda:0'; use {kind!r}.")
    gpus = torch.cuda.device_count()
    if colon and index not in map(str, range(gpus)):
        raise UserError(f"device {brief(device)} is not here: this machine has 'cuda:0' to 'cuda:{gpus - 1}'.")
    if kind == "auto":
        kind = next(best for best in ("mps", "cuda", "cpu") if here[best])
    return torch.device(kind) if kind == "cpu" else torch.device(kind, int(index or 0))
