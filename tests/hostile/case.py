"""A hostile case: the files it makes, the call that reads them, and what a right answer to it is."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

Generator = np.random.Generator
Make = Callable[[Path, Generator], None]
Check = Callable[[Path], str | None]
Expect = Literal["either", "sentence", "right"]
Kind = Literal["sentence", "right", "failure"]

MARKER = "executed"  # the file that a payload writes; nobody else does
PAYLOAD = f"open({MARKER!r}, 'w').write('run')"  # Python code; the current folder is the case's own
LIMIT = 30.0  # seconds of the processor's time that a case may take


class Wrong(Exception):  # noqa: N818 - it is read in "raise Wrong"
    """A call gave a result, and the result is wrong."""


class Outcome(NamedTuple):
    """What came of a case. A failure has a cause, in a word or two, and all outcomes have a detail."""

    kind: Kind
    cause: str
    detail: str


def finished(reference: Path) -> str | None:
    """Accept any result."""
    return None


def nothing(reference: Path, rng: Generator) -> None:
    """Make no files."""


@dataclass(frozen=True)
class Case:
    """One hostile input.

    ``make`` and ``right`` run in the case's own folder and get the folder of sound files (``reference.py``).

    Args:
        family: the family that made it.
        number: its number in the family.
        label: what is hostile about it.
        seed: from which all its random numbers come, together with the family and the number.
        make: writes the files of the case.
        call: the arguments of the command, or a Python call, which raises ``Wrong`` for a wrong result.
        expect: whether a sentence, a right result, or either will do.
        right: returns what is wrong with the result of a command that ended well, or None.
        writes: patterns of the files that the call may make or change.
        limit: seconds of the processor's time until it counts as a hang.
        hungry: whether it asks for much memory in the open, so that running out of it may be said.
        refusals: the errors that count as a sentence of a Python call.
    """

    family: str
    number: int
    label: str
    seed: int
    call: tuple[str, ...] | Callable[[], None]
    make: Make = nothing
    expect: Expect = "either"
    right: Check = finished
    writes: tuple[str, ...] = ()
    limit: float = LIMIT
    hungry: bool = False
    refusals: tuple[str, ...] = ("UserError", "ValueError")

    @property
    def name(self) -> str:
        """The name by which a case is run again, such as ``data/17``."""
        return f"{self.family}/{self.number}"

    @property
    def rng(self) -> Generator:
        """The random numbers of the case, from the start."""
        return generator(self.family, self.number, self.seed)


def generator(family: str, number: int, seed: int) -> Generator:
    """Return the random numbers of one case.

    >>> generator("data", 3, 0).integers(100, size=3).tolist() == generator("data", 3, 0).integers(100, size=3).tolist()
    True
    >>> generator("data", 3, 0).random() == generator("data", 4, 0).random()
    False
    """
    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(family.encode()), number]))
