"""How much memory there is, asked before an array is made whose size only a file's header states."""

from __future__ import annotations

import os
from pathlib import Path

from pinoise.errors import UserError

_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup/memory.max")  # what a container may take


def free_memory() -> int | None:
    """Return the bytes of memory that are free here: where the system does not say, all that there are, or None."""
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    for line in _text(_MEMORY).splitlines():
        if line.startswith("MemAvailable:"):
            free = 1024 * int(line.split()[1])
    group = _text(_GROUP).strip()
    return min(free, int(group)) if group.isdecimal() else free


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def check_memory(needed: int, *, where: str | Path, what: str) -> None:
    """Raise an error if something takes more bytes than there is memory.

    >>> check_memory(1 << 60, where="a.npz", what="the array 'X'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.npz: the array 'X' takes 1152921505 GB of memory and this machine has ... free: ...
    """
    free = free_memory()
    if free is not None and needed > free:
        raise UserError(
            f"{where}: {what} takes {needed / 1e9:.0f} GB of memory and this machine has {free / 1e9:.0f} GB free: "
            "give less data, or get the file again if it should be smaller."
        )
