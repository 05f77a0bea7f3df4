"""How much memory there is, asked before an array is made whose size only a file's header states."""

from __future__ import annotations

import os
from pathlib import Path

from pinoise.errors import UserError

_GROUP = Path("/sys/fs/cgroup/memory.max")  # what a container may take


def machine_memory() -> int | None:
    """Return the bytes of memory that the machine has, or that this process may take, or None if it is unknown."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    try:
        group = _GROUP.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return machine
    return min(machine, int(group)) if group.isdecimal() else machine


def check_memory(needed: int, *, where: str | Path, what: str) -> None:
    """Raise an error if something takes more bytes than there is memory.

    >>> check_memory(1 << 60, where="a.npz", what="the array 'X'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.npz: the array 'X' takes 1152921505 GB of memory and this machine has ...
    """
    there = machine_memory()
    if there is not None and needed > there:
        raise UserError(
            f"{where}: {what} takes {needed / 1e9:.0f} GB of memory and this machine has {there / 1e9:.0f}: give less "
            "data, or get the file again if it should be smaller."
        )
