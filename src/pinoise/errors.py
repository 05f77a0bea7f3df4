"""The error that a user's mistake raises."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class UserError(ValueError):
    """A mistake in the user's input. Its message is one sentence: what was found and what is allowed.

    The command prints the sentence and exits with code 2. In Python it is an ordinary ``ValueError``.
    """


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
    names = list(allowed)
    near = difflib.get_close_matches(brief(got).strip("'"), names, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return UserError(f"unknown {kind} {brief(got)}{hint} Allowed: {', '.join(names)}.")
