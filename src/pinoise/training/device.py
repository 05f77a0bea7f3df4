"""The machine that trains: its device, precision, random numbers and description."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pinoise.errors import UserError, brief, unknown_choice

# Purposes of random numbers, for seed_of.
BUILDING, TRAINING, HOLDING_OUT = 0, 1, 2

DEVICES = ("auto", "cpu", "cuda", "mps")
_LARGEST_USUAL_BLOCK = 31 << 20  # bytes; those of its administration are added


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
    gpus = torch.cuda.device_count()
    if colon and not (index.isdecimal() and index.isascii() and len(index) < 5 and int(index) < gpus):
        raise UserError(f"device {brief(device)} is not here: this machine has 'cuda:0' to 'cuda:{gpus - 1}'.")
    return kind


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


def best_kind() -> str:
    """Return the kind of the fastest device of this machine."""
    if torch.backends.mps.is_available():
        return "mps"
    return "cuda" if torch.cuda.is_available() else "cpu"


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
    packages = ("pinoise", "torch", "numpy", "scipy", "scikit-learn")
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
