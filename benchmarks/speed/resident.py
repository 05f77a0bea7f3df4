"""The memory of this process."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def status_mb(name: str) -> float:
    """Return a figure of ``/proc/self/status`` in MB, such as ``VmHWM``, the most memory so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1e3


def forget_peak() -> None:
    """Let ``VmHWM`` start again from the memory of now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


@contextmanager
def watched(every: float = 0.02) -> Iterator[list[float]]:
    """Note the most memory of its own that the process has in the block; pages of mapped files are the system's."""
    most, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(every):
            most[0] = max(most[0], status_mb("RssAnon"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()
