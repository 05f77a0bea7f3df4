"""The machine that trains: its device, precision, processes, random numbers and description."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from pinoise.choices import StrategyName
from pinoise.errors import UserError, brief, unknown_choice
from pinoise.modes import hidden_variables
from pinoise.training.config import TrainingSettings
from pinoise.training.processes import ALONE, Group, find_group

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Purposes of random numbers, for seed_of.
BUILDING, TRAINING, HOLDING_OUT = 0, 1, 2

DEVICES = ("auto", "cpu", "cuda", "mps")
_LARGEST_USUAL_BLOCK = 31 << 20  # bytes; those of its administration are added
T = TypeVar("T")


def check_device(device: str) -> str:
    """Return the kind of device. Refuse one that this machine does not have.

    >>> check_device("cpu")
    'cpu'
    """
    kind, colon, index = device.partition(":")
    if kind not in DEVICES:
        raise unknown_choice("device", device, DEVICES)
    absent = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if absent.get(kind, False):
        raise UserError(f"device {device!r} is not available on this machine: use 'cpu' or 'auto'.")
    if colon and kind != "cuda":
        raise UserError(f"device {brief(device)} has an index: only 'cuda' takes one, as in 'cuda:0'; use {kind!r}.")
    if colon and not (index.isdecimal() and index.isascii() and len(index) < 5 and int(index) < _gpus()):
        raise UserError(f"device {brief(device)} is not here: this machine has 'cuda:0' to 'cuda:{_gpus() - 1}'.")
    return kind


def _gpus() -> int:
    return torch.cuda.device_count()


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Make the CPU treat numbers below 1e-38 as 0 inside the block.

    If gradients vanish, as in a collapsed generator, the optimiser's moments decay to numbers of this size and slow the
    steps down. The setting holds for the calling thread and for worker threads that start later, so enter it early.

    >>> with flushed_denormals():
    ...     bool(torch.tensor(1e-39) * 0.5 == 0)
    True
    """
    flushed_before = bool(torch.tensor(1e-39) * 0.5 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)


def keep_freed_memory() -> None:
    """Let the process keep what a step frees for the next step, which then need not ask the system for it again.

    GNU's C library gives large blocks back at once, until a larger one was freed: then it takes blocks of that size for
    usual. The largest that it learns from has 32 MB. Without this a step spends time on pages that it had before
    (``benchmarks/speed/freed.py``). Other systems do not care.

    >>> keep_freed_memory()
    """
    torch.empty(_LARGEST_USUAL_BLOCK, dtype=torch.uint8)


def make_fabric(settings: TrainingSettings, *, together: bool = False) -> Fabric:
    """Return the Fabric for these settings.

    Args:
        settings: device, precision and number of processes.
        together: whether to train in several processes: the ones that ``torchrun`` or ``srun`` started, or else the
            number in the settings. The Fabric must then be launched. False trains in this process alone.
    """
    kind = check_device(settings.device)
    group = find_group(settings.devices, settings.nodes) if together and not settings.is_alone else ALONE
    if not together and settings.devices * settings.nodes > 1:
        raise UserError(
            f"training.devices is {settings.devices} and training.nodes {settings.nodes}: "
            "only 'pinoise train' trains in several processes; leave both at 1 here."
        )
    if group is not ALONE:
        _check_group(settings.device, kind, group)
    _, _, index = settings.device.partition(":")
    return fabric_of(
        group,
        accelerator=_best_kind() if kind == "auto" else kind,
        devices=[int(index)] if index else group.per_node,
        precision=settings.precision,
        strategy=settings.strategy,
        wait=settings.wait,
    )


def fabric_of(
    group: Group, *, accelerator: str, devices: list[int] | int, precision: Any, strategy: StrategyName, wait: int
) -> Fabric:
    """Return the Fabric of a group.

    Args:
        group: the processes that train together.
        accelerator: the kind of device.
        devices: the device of this process by its number, or how many each node has.
        precision: of the training steps.
        strategy: what several processes do with the weights.
        wait: the seconds within which the processes meet.
    """
    from pinoise.training.fabric import STRATEGIES, Cluster, Fabric  # Lightning takes a second to import

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # its import sets another level
    with hidden_variables(lambda name: name.startswith("LT_")):  # they would win over the settings
        return Fabric(
            accelerator=accelerator,
            strategy="auto" if group is ALONE or group.size == 1 else STRATEGIES[strategy](group, wait=wait),
            devices=devices,
            num_nodes=group.nodes,
            precision=precision,
            plugins=[Cluster(group)],
        )


def _best_kind() -> str:
    if torch.backends.mps.is_available():
        return "mps"
    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_group(device: str, kind: str, group: Group) -> None:
    if group.size == 1:
        return
    if ":" in device:
        raise UserError(f"device {device!r} is one GPU, but {group.size} processes were asked for: use 'cuda'.")
    if kind in ("auto", "mps") and torch.backends.mps.is_available():
        raise UserError("device 'mps' supports one process only, but several were asked for: use 'cpu'.")
    gpus, cores = _gpus(), os.cpu_count() or 1
    if kind == "cuda" or (kind == "auto" and gpus):
        if group.per_node > gpus:
            raise UserError(
                f"{group.per_node} processes were asked for, but this machine has {gpus} GPU(s): "
                "start fewer, or use device 'cpu'."
            )
    elif group.per_node > max(8, cores):
        raise UserError(
            f"{group.per_node} processes were asked for, but this machine has {cores} core(s): start fewer."
        )


def on_first(fabric: Fabric, work: Callable[[], T]) -> T:
    """Do some work in the first process alone, and give its result or its error to all processes.

    >>> on_first(make_fabric(TrainingSettings()), lambda: 3)
    3
    """
    outcome: tuple[T | None, Exception | None] = (None, None)
    if fabric.is_global_zero:
        try:
            outcome = (work(), None)
        except (UserError, OSError) as error:
            outcome = (None, error)
    result, complaint = fabric.broadcast(outcome)
    if complaint is not None:
        raise complaint
    return result  # type: ignore[return-value]


@torch.no_grad()
def average_statistics(fabric: Fabric, model: nn.Module) -> None:
    """Average the statistics of batch normalisation over all processes. Every process must call it."""
    if fabric.world_size == 1:
        return
    statistics = [
        buffer
        for part in model.modules()
        if isinstance(part, nn.modules.batchnorm._BatchNorm)
        for buffer in (part.running_mean, part.running_var)
        if buffer is not None
    ]
    if not statistics:
        return
    mean: Any = fabric.all_reduce(torch.cat([buffer.flatten() for buffer in statistics]), reduce_op="mean")
    for buffer, values in zip(statistics, mean.split([buffer.numel() for buffer in statistics]), strict=True):
        buffer.copy_(values.view_as(buffer))


def any_process(fabric: Fabric, flag: bool) -> bool:
    """Return whether the flag is true on at least one process. All must call it at the same step.

    >>> any_process(make_fabric(TrainingSettings()), True)
    True
    """
    if fabric.world_size == 1:
        return flag
    return bool(fabric.all_reduce(torch.tensor(float(flag), device=fabric.device), reduce_op="max"))


def mean_over_processes(fabric: Fabric, values: Tensor) -> list[float]:
    """Return the means of numbers over all processes. All must call it at the same step.

    >>> mean_over_processes(make_fabric(TrainingSettings()), torch.tensor([2.5, 1.0]))
    [2.5, 1.0]
    """
    means: Any = fabric.all_reduce(values.clone(), reduce_op="mean")
    return [float(mean) for mean in means.tolist()]


def seed_of(seed: int, purpose: int, rank: int = 0) -> int:
    """Derive an independent seed for one purpose and process, so that no two share their random numbers.

    >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(0, 2), seed_of(0, 1) == seed_of(1, 1)
    (True, False, False)
    """
    return int(np.random.SeedSequence([seed, purpose, rank]).generate_state(1)[0])


def describe_environment() -> dict[str, Any]:
    """Return versions, hardware and date.

    >>> sorted(describe_environment())
    ['cpu', 'cpu_count', 'cuda', 'date', 'memory_gb', 'packages', 'platform', 'python', 'torch_threads']
    """
    packages = ("pinoise", "torch", "lightning-fabric", "numpy", "scipy", "scikit-learn")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_name(),
        "cpu_count": os.cpu_count(),
        "memory_gb": memory_gb(),
        "torch_threads": torch.get_num_threads(),
        "cuda": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "packages": {name: version(name) for name in packages},
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def memory_gb() -> float | None:
    """Return the machine's memory in GB, or None if it is unknown."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None
