"""How often each value of a column comes, for columns of any length: what does not fit is counted in several passes."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

MOST_VALUES = 1 << 19
"""The most different values that are counted in one pass."""


class Tally:
    """The number of different values, and the most frequent ones; of equally frequent ones those that sort first.

    >>> tally = Tally(most=2)
    >>> tally.add(["b", "a", "c"], [2, 2, 1])
    >>> tally.again(), tally.distinct, tally.cells, tally.top
    (False, 3, 5, [('a', 2), ('b', 2)])
    """

    def __init__(self, *, most: int) -> None:
        """Keep the ``most`` frequent values."""
        self.distinct = self.cells = 0
        self.top: list[tuple[str, int]] = []
        self._most = most
        self._parts, self._part = 1, 0  # a pass counts one part of the values
        self._counts: dict[str, int] = {}
        self._too_many = False

    def add(self, values: Iterable[str], counts: Iterable[int]) -> None:
        """Take different values, each with how often it comes in a piece of the column."""
        for value, count in zip(values, counts, strict=True):
            if self._parts == 1:
                self.cells += count
            if not self._too_many and hash(value) % self._parts == self._part:
                self._counts[value] = self._counts.get(value, 0) + count
        if self._parts == 1 and len(self._counts) > MOST_VALUES:
            self._counts, self._too_many = {}, True

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        if self._too_many:
            self._too_many, self._parts = False, ceil(self.cells / MOST_VALUES)
            return True
        self.distinct += len(self._counts)
        ranked = sorted([*self.top, *self._counts.items()], key=lambda item: (-item[1], item[0]))
        self.top, self._counts = ranked[: self._most], {}
        self._part += 1
        return self._part < self._parts
