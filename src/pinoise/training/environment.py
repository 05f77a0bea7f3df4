"""What a run ran on, for whoever reads its figures later."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


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
    """Return the machine's memory, None where it does not say."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None
