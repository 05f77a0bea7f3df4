"""The cells of a comparison, and what they come to over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

SCORES = ("knn", "sr", "lr", "few")


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed, under one embedding; accuracies from 0 to 1."""

    data: str
    method: str
    seed: int
    embedding: str
    knn: float
    sr: float
    lr: float
    few: float
    seconds: float  # to fit the encoder, without evaluation
    flags: tuple[str, ...] = ()  # what went wrong in training, by name
    few_draws: tuple[float, ...] = ()  # of every draw of labels, whose mean is ``few``

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "flags": list(self.flags), "few_draws": list(self.few_draws)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cell:
        """Read what ``as_dict`` wrote."""
        return cls(**{**values, "flags": tuple(values["flags"]), "few_draws": tuple(values["few_draws"])})


@dataclass(frozen=True)
class Line:
    """A method's scores on one data set over all seeds, in percent."""

    data: str
    method: str
    means: dict[str, float]
    stds: dict[str, float]
    seconds: float
    flags: tuple[str, ...]


def summarise(cells: Sequence[Cell]) -> list[Line]:
    """Return mean and standard deviation over seeds for every data set and method, in the order they came.

    >>> cell = Cell("toy", "raw", 0, "joined", 0.5, 0.5, 0.5, 0.5, 1.0)
    >>> summarise([cell])[0].means["knn"]
    50.0
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.data, cell.method), []).append(cell)
    return [
        Line(
            data=data,
            method=method,
            means={name: 100 * float(np.mean([getattr(cell, name) for cell in group])) for name in SCORES},
            stds={name: 100 * float(np.std([getattr(cell, name) for cell in group])) for name in SCORES},
            seconds=float(np.median([cell.seconds for cell in group])),
            flags=tuple(dict.fromkeys(flag for cell in group for flag in cell.flags)),
        )
        for (data, method), group in groups.items()
    ]
