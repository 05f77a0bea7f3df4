"""The error that a user's mistake raises, and the phrases that such sentences share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class UserError(ValueError):
    """A mistake in the user's input. Its message is one sentence: what was found and what is allowed.

    The command prints the sentence and exits with code 2. In Python it is an ordinary ``ValueError``.
    """


class RowError(UserError):
    """A mistake in one row, which is counted from 0 and named from 1.

    >>> str(RowError("a.csv: data row ", 4, " is empty."))
    'a.csv: data row 5 is empty.'
    """

    def __init__(self, before: str, row: int, rest: str) -> None:
        super().__init__(f"{before}{row + 1}{rest}")
        self._parts = before, row, rest

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, self._parts


@contextmanager
def rows_among(numbers: Any) -> Iterator[None]:
    """Let the errors of a block, which sees some rows of a table, name rows of the whole by these numbers, from 0.

    >>> with rows_among([3, 8]):
    ...     raise RowError("data row ", 1, " is empty.")
    Traceback (most recent call last):
    ...
    pinoise.errors.RowError: data row 9 is empty.
    """
    try:
        yield
    except RowError as error:
        before, row, rest = error._parts
        raise RowError(before, int(numbers[row]), rest) from error.__cause__


def shown(value: Any) -> str:
    """Return what a value is, for a message: the shape of a tensor, the type of anything else.

    >>> shown(3.0)
    'float'
    """
    is_tensor = hasattr(value, "requires_grad") and hasattr(value, "shape")
    return f"shape {tuple(value.shape)}" if is_tensor else type(value).__name__


def brief(value: object, *, most: int = 100) -> str:
    """Return the ``repr`` of a value for a message, cut to a length that can be read.

    >>> brief("mine"), brief([1] * 1000, most=9), brief(10**5000)
    ("'mine'", '[1, 1, 1,…', 'a number of more than 4,300 digits')
    """
    if isinstance(value, str | bytes):
        value = value[: most + 1]
    try:
        text = repr(value)
    except ValueError:  # Python's limit on the digits of a number, perhaps inside a list
        return "a number of more than 4,300 digits"
    return text if len(text) <= most else f"{text[:most]}…"


def unknown_choice(kind: str, got: object, allowed: Iterable[str]) -> UserError:
    """Return the error for an unknown name. It suggests the nearest valid name.

    >>> str(unknown_choice("method", "simlcr", ["simclr", "moco"]))
    "unknown method 'simlcr': did you mean 'simclr'? Allowed: simclr, moco."
    """
    return UserError(f"unknown {kind} {not_among(got, allowed)}")


def not_among(got: object, allowed: Iterable[str]) -> str:
    """Return the end of a sentence on a value that is not allowed. It suggests the nearest one that is.

    >>> not_among("zeros", ["zero", "learned"])
    "'zeros': did you mean 'zero'? Allowed: zero, learned."
    """
    names = list(allowed)
    near = difflib.get_close_matches(brief(got).strip("'"), names, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return f"{brief(got)}{hint} Allowed: {', '.join(names)}."


def either(names: Iterable[str], *, last: str = "or") -> str:
    """Return all names for a line of help or a sentence.

    >>> either(["joined", "learned", "raw"])
    'joined, learned or raw'
    """
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end


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


@contextmanager
def needing(extra: str, *, what: str) -> Iterator[None]:
    """Say which extra has a library that a block imports, where it is not installed."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{what} needs the extra {extra!r}: pip install 'pinoise[{extra}]'.") from error


def cannot_read(path: str | Path, error: OSError) -> UserError:
    """Return the error for a file that cannot be opened.

    >>> str(cannot_read("a.csv", PermissionError(13, "Permission denied")))
    'cannot read a.csv: Permission denied.'
    """
    return UserError(f"cannot read {path}: {error.strerror or error}.")
