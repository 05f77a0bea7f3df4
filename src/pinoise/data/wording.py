"""Phrases that several readers put into their notes and errors."""

from __future__ import annotations

from collections.abc import Iterable
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


def damaged(where: str | Path, error: BaseException) -> UserError:
    """Return the error for a file whose content cannot be read.

    >>> str(damaged("a.csv.gz", EOFError("unexpected end")))
    'a.csv.gz is damaged, cut off or not what its name says (unexpected end): get or write the file again.'
    """
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].removesuffix(".")
    return UserError(f"{where} is damaged, cut off or not what its name says ({reason}): get or write the file again.")
