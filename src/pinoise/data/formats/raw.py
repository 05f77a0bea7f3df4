"""What readers of files and of objects in memory return, before anything is learned from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from pinoise.data.dataset import Samples

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
