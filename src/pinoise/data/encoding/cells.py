"""What every kind of column says of its cells."""

from __future__ import annotations

from typing import NamedTuple

from pinoise.errors import RowError

_MOST_EXAMPLES = 1000


class Encoded(NamedTuple):
    """What happened to the cells of a column: how many were missing, and which values training did not have."""

    missing: int
    unseen: int = 0
    examples: tuple[str, ...] = ()
    numbers: int = 0  # cells that are numbers and not one of the texts that training had

    def and_then(self, other: Encoded) -> Encoded:
        """Return what happened to the cells of two pieces of a column.

        >>> Encoded(1, 2, ("a", "b")).and_then(Encoded(0, 1, ("a",)))
        Encoded(missing=1, unseen=3, examples=('a', 'b'), numbers=0)
        """
        examples = tuple(dict.fromkeys((*self.examples, *other.examples)))
        counts = self.missing + other.missing, self.unseen + other.unseen
        return Encoded(*counts, examples[:_MOST_EXAMPLES], self.numbers + other.numbers)


def missing_cell(name: str, row: int, where: str) -> RowError:
    """Return the error for a missing cell that the user's policy refuses."""
    return RowError(
        f"{where}: column {name!r}, data row ",
        row,
        " is missing, which missing='error' refuses: fill it in, or choose missing='median', 'mean' or 'zero'.",
    )
