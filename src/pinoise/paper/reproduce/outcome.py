"""What a reproduction has found: lines with the paper's numbers beside ours, curves, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any

from scipy import stats

from pinoise.data.dataset import Dataset
from pinoise.experiments.sources import scored_part
from pinoise.paper.reproduce.data import UsedSet
from pinoise.paper.reproduce.paper import Item, find_item

LEVEL = 0.95  # of intervals
_SIZES = ("train", "test", "shape")


@dataclass(frozen=True)
class OutcomeLine:
    """A row of an item on one data set."""

    data: str  # its key in the item
    group: str
    title: str
    method: str  # the recipe
    paper: Mapping[str, Sequence[float]]  # a column's mean and standard deviation
    ours: Mapping[str, Sequence[float]]  # a column's value for every seed, in the paper's units
    above: str | None = None
    flags: Sequence[str] = ()
    note: str | None = None  # why ours differs

    def mean(self, column: str) -> float | None:
        """Return our mean of a column over seeds, None if it was not measured."""
        return fmean(self.ours[column]) if self.ours.get(column) else None

    def difference(self, column: str) -> float | None:
        """Return how far we are above the paper, None where one of the two is missing.

        >>> OutcomeLine("har", "", "CLAE", "clae", {"knn": [85.5, 0.2]}, {"knn": [84.0, 86.0]}).difference("knn")
        -0.5
        """
        mean = self.mean(column)
        return None if mean is None or column not in self.paper else mean - self.paper[column][0]


@dataclass(frozen=True)
class Curve:
    """Something over epochs, as the mean over seeds."""

    data: str
    title: str
    column: str
    epochs: Sequence[int]
    values: Sequence[float]


@dataclass
class Reproduction:
    """An item at a scale: what it was run on and what came out so far."""

    item: Item
    scale: str
    seeds: Sequence[int]
    used: list[UsedSet]
    total: int  # fits when it is finished
    finished: int = 0
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the data sets as they were used
    lines: list[OutcomeLine] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command that makes it again."""
        usual = self.item.scales[self.scale].seeds == len(self.seeds)
        seeds = "" if usual else f" --seeds {len(self.seeds)}"
        return f"pinoise reproduce {self.item.name} --scale {self.scale}{seeds}"

    @property
    def heading(self) -> str:
        """The item and how it was run, in a line."""
        seeds = "" if len(self.seeds) == 1 else f", {len(self.seeds)} seeds"
        return f"{self.item.name}: {self.item.title} ({self.item.label}; scale {self.scale}{seeds})"

    @property
    def is_complete(self) -> bool:
        """Whether every fit is finished."""
        return self.finished == self.total

    def line(self, data: str, title: str) -> OutcomeLine | None:
        """Return the line of a row on a data set."""
        return next((line for line in self.lines if line.data == data and line.title == title), None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "item": self.item.name,
            "title": self.item.title,
            "label": self.item.label,
            "kind": self.item.kind,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "command": self.command,
            "data": [{**used.as_dict(), **self.sizes.get(used.key, {})} for used in self.used],
            "total": self.total,
            "finished": self.finished,
            "notes": self.notes,
            "rows": [_plain(line) for line in self.lines],
            "curves": [_plain(curve) for curve in self.curves],
            "environment": dict(self.environment),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reproduction:
        """Read what ``as_dict`` wrote."""
        return cls(
            item=find_item(values["item"]),
            scale=values["scale"],
            seeds=values["seeds"],
            used=[UsedSet(**{name: one[name] for name in UsedSet._fields}) for one in values["data"]],
            total=values["total"],
            finished=values["finished"],
            notes=values["notes"],
            sizes={one["key"]: {name: one[name] for name in _SIZES if name in one} for one in values["data"]},
            lines=[_line(row) for row in values["rows"]],
            curves=[Curve(**curve) for curve in values["curves"]],
            environment=values["environment"],
        )


def size_of(data: Dataset) -> dict[str, Any]:
    """Return the size of a data set as it was used: of the rows that are trained on, and of those that score.

    >>> import numpy as np
    >>> from pinoise.data.dataset import Part
    >>> size_of(Dataset("toy", train=Part(np.zeros((9, 2))), test=Part(np.zeros((3, 2)))))
    {'train': 9, 'test': 3, 'shape': [2]}
    """
    test = scored_part(data).test
    sizes = (len(data.train), 0 if test is None else len(test), list(data.shape))
    return dict(zip(_SIZES, sizes, strict=True))


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a mean over seeds (Student's t), None for one seed.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    if len(values) < 2:
        return None
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return fmean(values) - half, fmean(values) + half


def _line(row: Mapping[str, Any]) -> OutcomeLine:
    values = {name: row[name] for name in OutcomeLine.__dataclass_fields__ if name in row}
    return OutcomeLine(**{**values, "flags": tuple(row["flags"])})


def _plain(value: OutcomeLine | Curve) -> dict[str, Any]:
    found = asdict(value)
    if isinstance(value, OutcomeLine):
        found["flags"] = list(value.flags)
        found["difference"] = {column: value.difference(column) for column in value.ours if column in value.paper}
        found["interval"] = {column: interval(values) for column, values in value.ours.items()}
    return found
