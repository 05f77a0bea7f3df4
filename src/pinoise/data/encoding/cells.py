"""What every kind of column says of its cells."""

from __future__ import annotations

from typing import NamedTuple

from pinoise.errors import UserError


class Encoded(NamedTuple):
    """What happened to the cells of a column: how many were missing, and which values training did not have."""

    missing: int
    unseen: int = 0
    examples: tuple[str, ...] = ()


def missing_cell(name: str, row: int, where: str) -> UserError:
    """Return the error for a missing cell that the user's policy refuses."""
    return UserError(
        f"{where}: column {name!r}, data row {row + 1} is missing, which missing='error' refuses: fill it in, or "
        "choose missing='median', 'mean' or 'zero'."
    )
