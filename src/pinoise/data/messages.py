"""Phrases and checks that notes and errors of several readers share, and how much memory there is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pinoise.errors import UserError


def listed(names: Iterable[str], *, most: int = 8) -> str:
    """Return names as one phrase, cut after ``most``.

    >>> listed("abcde", most=3)
    'a, b, c and 2 more'
    """
    names = list(names)
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the right form.

    >>> counted(1, "row"), counted(3, "row")
    ('1 row', '3 rows')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type where it has none.

    >>> first_line(ValueError("cut off.")), first_line(EOFError())
    ('cut off', 'EOFError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0].removesuffix(".")


def damaged(where: str | Path, error: BaseException) -> UserError:
    """Return the error for a file whose content cannot be read, or that the system does not let us read.

    >>> str(damaged("a.csv.gz", EOFError("unexpected end")))
    'a.csv.gz is damaged, cut off or not what its name says (unexpected end): get or write the file again.'
    >>> str(damaged("a.csv.gz", PermissionError(13, "Permission denied")))
    'cannot read a.csv.gz: Permission denied.'
    """
    if isinstance(error, OSError) and error.strerror:  # of the system, not of a library
        return cannot_read(where, error)
    reason = first_line(error)
    return UserError(f"{where} is damaged, cut off or not what its name says ({reason}): get or write the file again.")


@contextmanager
def damage_named(where: str | Path, errors: type[Exception] | tuple[type[Exception], ...]) -> Iterator[None]:
    """Turn these errors of a library into the one sentence on a damaged file."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except errors as error:
        raise damaged(where, error) from error


def cannot_read(path: str | Path, error: OSError) -> UserError:
    """Return the error for a file that cannot be opened.

    >>> str(cannot_read("a.csv", PermissionError(13, "Permission denied")))
    'cannot read a.csv: Permission denied.'
    """
    return UserError(f"cannot read {path}: {error.strerror or error}.")


def free_memory() -> int | None:
    """Return the bytes of memory that are free here: where the system does not say, all that there are, or None."""
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    if found := re.search(r"MemAvailable: +(\d+) kB", _text("/proc/meminfo")):
        free = 1024 * int(found[1])
    group = _text("/sys/fs/cgroup/memory.max").strip()  # what a container may take
    return min(free, int(group)) if group.isdecimal() else free


def _text(path: str) -> str:
    return Path(path).read_text(encoding="ascii") if os.access(path, os.R_OK) else ""


def check_memory(needed: int, *, where: str | Path, what: str) -> None:
    """Raise an error if something takes more bytes than there is memory, asked before an array of that size is made.

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
