"""What readers of files and of objects in memory return, before anything is learned from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from pinoise.data.dataset import Samples
from pinoise.errors import UserError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RawPart:
    """Samples with labels and groups of whatever type the source has."""

    x: Samples
    y: Array | None = None
    groups: Array | None = None
    names: tuple[str, ...] | None = None  # the file of every row, for a folder of images


@dataclass(frozen=True)
class RawArrays:
    """What a source of arrays holds, and notes on how it was read."""

    train: RawPart
    test: RawPart | None = None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    first_index: int | None = None  # number of the first feature in an svmlight file
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[RawPart, ...]:
        """The training part, and the test part where there is one."""
        return (self.train,) if self.test is None else (self.train, self.test)


class Table(ABC):
    """A table with named columns that is read piece by piece, as often as it is asked."""

    y: Any = None  # labels that come apart from it, as an Arrow array
    notes: tuple[str, ...] = ()  # on how it was read

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns, as they stand in the source."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def kind_of(self, name: str) -> Any:
        """Return the Arrow type of a column."""

    @abstractmethod
    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield Arrow tables of these columns with their first row, in order; together they are all rows."""


@dataclass(frozen=True)
class RawTable(Table):
    """An Arrow table in memory, labels that come apart from it as an Arrow array, and notes on how it was read."""

    table: Any
    y: Any = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def kind_of(self, name: str) -> Any:
        """Return the Arrow type of a column."""
        return self.table.column(name).type

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield the whole table."""
        yield 0, self.table


def check_names(names: Sequence[str], *, where: object) -> None:
    """Refuse a table of which two columns have the same name.

    >>> check_names(["a", "b", "a"], where="a.csv")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.csv has more than one column called 'a': rename them.
    """
    if len(set(names)) < len(names):
        twice = next(name for name, number in Counter(names).items() if number > 1)
        raise UserError(f"{where} has more than one column called {twice!r}: rename them.")
