"""What trains: this process alone, or one of several, by torch's process group and DistributedDataParallel."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from pinoise.choices import PRECISION, PrecisionName
from pinoise.errors import UserError
from pinoise.training.config import TrainingSettings
from pinoise.training.loop import Machine, T, check_device
from pinoise.training.processes import Group, LostProcessError, from_checkpoint

dist: Any = torch.distributed  # which does not export its functions to the type checker


class Member(Machine):
    """A process of a group. Every process has all weights, and their gradients are averaged.

    Args:
        device: what it trains on.
        precision: of the training steps.
    """

    def __init__(self, device: torch.device, precision: PrecisionName = PRECISION) -> None:
        super().__init__(device, precision)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def wrap(self, model: nn.Module) -> nn.Module:
        """Move a model to the device. Return what the steps call.

        ``find_unused_parameters`` keeps gradient buckets in one order, so a resumed run sums them in the same order.
        Buffers are not broadcast: ``average_statistics`` keeps them equal, and some hold thousands of rows.
        """
        return DistributedDataParallel(
            model.to(self.device),
            device_ids=[self.device] if self.device.type == "cuda" else None,
            find_unused_parameters=True,
            broadcast_buffers=False,
        )

    @torch.no_grad()
    def average_statistics(self, model: nn.Module) -> None:
        """Average the statistics of batch normalisation over the processes. Every process must call it."""
        statistics = [
            buffer
            for part in model.modules()
            if isinstance(part, nn.modules.batchnorm._BatchNorm)
            for buffer in (part.running_mean, part.running_var)
            if buffer is not None
        ]
        if not statistics:
            return
        mean = self._mean(torch.cat([buffer.flatten() for buffer in statistics]))
        for buffer, values in zip(statistics, mean.split([buffer.numel() for buffer in statistics]), strict=True):
            buffer.copy_(values.view_as(buffer))

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in at least one process. All must call it at the same step."""
        found = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return bool(found)

    def mean(self, values: Tensor) -> list[float]:
        """Return the means of numbers over the processes. All must call it at the same step."""
        return super().mean(self._mean(values.clone().to(self.device)))

    def _mean(self, values: Tensor) -> Tensor:
        dist.all_reduce(values)
        return values.div_(self.size)

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all processes, stacked, on the CPU. All must call it at the same step."""
        tensor = tensor.to(self.device)
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor)
        return torch.stack(parts).cpu()

    def first(self, work: Callable[[], T]) -> T:
        """Do some work in the first process alone, and give its result or its error to all processes."""
        outcome: list[Any] = [None, None]
        if self.rank == 0:
            try:
                outcome[0] = work()
            except (UserError, OSError) as error:
                outcome[1] = error
        dist.broadcast_object_list(outcome, device=self.device)
        result, complaint = outcome
        if complaint is not None:
            raise complaint
        return result  # type: ignore[no-any-return]


def join(group: Group, settings: TrainingSettings) -> Member:
    """Meet the other processes of the group, unless Ray Train has brought them together already."""
    device = _device_of(group, settings.device)
    if not dist.is_available():
        raise UserError(f"{group.size} processes were asked for, but this build of torch trains in one: start one.")
    if not dist.is_initialized():
        on_gpu, wait = device.type == "cuda", timedelta(seconds=settings.wait)
        try:
            store, rank, size = next(dist.rendezvous("env://", timeout=wait))
            # torch's agent keeps its store when it starts processes again, and their old addresses in it.
            start = dist.PrefixStore(f"start {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
            dist.init_process_group(
                "nccl" if on_gpu else "gloo",
                **{"store": start, "rank": rank, "world_size": size, "timeout": wait},
                device_id=device if on_gpu else None,
            )
        except RuntimeError:
            raise UserError(
                f"the {group.size} processes did not meet at {os.environ.get('MASTER_ADDR')}:"
                f"{os.environ['MASTER_PORT']} in {settings.wait} s: start all of them in time, or raise training.wait."
            ) from None
        atexit.register(_leave)
    return Member(device, settings.precision)


def _leave() -> None:
    """End the group's threads while Python still runs: one that outlives it aborts a process that did all its work."""
    gc.collect()  # an error that ended the command may hold what was trained, which holds the threads
    dist.destroy_process_group()


def _device_of(group: Group, device: str) -> torch.device:
    """Return what a process of a group trains on. Refuse a machine that has not enough for all its processes."""
    kind, several = check_device(device).type, f"{group.per_node} processes were asked for"
    gpus, cores = torch.cuda.device_count(), os.cpu_count() or 1
    if ":" in device:
        raise UserError(f"device {device!r} is one GPU, but {group.size} processes were asked for: use 'cuda'.")
    if kind == "mps":
        raise UserError("device 'mps' supports one process only, but several were asked for: use 'cpu'.")
    if kind == "cuda" and group.per_node > gpus:
        raise UserError(f"{several}, but this machine has {gpus} GPU(s): start fewer, or use device 'cpu'.")
    if kind == "cpu" and group.per_node > max(8, cores):
        raise UserError(f"{several}, but this machine has {cores} core(s): start fewer.")
    return torch.device(kind, group.local_rank) if kind == "cuda" else torch.device(kind)


@contextmanager
def noticing_losses(again: str, settings: TrainingSettings) -> Iterator[None]:
    """Turn the end of another process of the group, or its silence, into one sentence.

    Args:
        again: the command that goes on.
        settings: of the training.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_loss(error):
            raise
        another, go_on = f"another of the {dist.get_world_size()} processes that train together", from_checkpoint(again)
        if "imed out" in str(error):
            raise UserError(f"{another} gave no sign of life for {settings.wait} s (training.wait); {go_on}") from None
        raise LostProcessError(f"{another} ended or cannot be reached, so this one stops; {go_on}") from None


def is_loss(error: BaseException) -> bool:
    """Whether an error means that another process of the group is gone. Gloo's errors are known by their text alone.

    >>> is_loss(RuntimeError("shapes do not match"))
    False
    """
    if not (dist.is_available() and dist.is_initialized() and isinstance(error, RuntimeError)):
        return False
    return isinstance(error, dist.DistError) or "gloo" in str(error)
