"""The cells of a comparison, their summary over seeds, and what it means in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pinoise.choices import SCORES, EmbeddingName
from pinoise.errors import either
from pinoise.experiments.recipes import RECIPES, is_trained

_VISIBLE = 0.5  # points from which the standardised probe is worth a column of its own


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed, under one embedding; scores up to 1, None if not computed."""

    data: str
    method: str
    seed: int
    embedding: EmbeddingName
    knn: float | None
    sr: float | None
    lr: float | None
    few: float | None
    seconds: float  # to fit the encoder or the classifier once, without evaluation
    flags: tuple[str, ...] = ()  # what went wrong in training, by name
    few_draws: tuple[float, ...] = ()  # of every draw of labels, whose mean is ``few``
    few_standardised: float | None = None
    measured: bool = False  # whether the scores are R² of a measurement instead of accuracies

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
    means: dict[str, float]  # of the scores that it has
    stds: dict[str, float]
    seconds: float
    flags: tuple[str, ...]
    measured: bool = False


def summarise(cells: Sequence[Cell]) -> list[Line]:
    """Return mean and standard deviation over seeds for every data set and method, in the order they came.

    >>> cell = Cell("toy", "raw", 0, "joined", 0.5, 0.5, 0.5, 0.5, 1.0)
    >>> summarise([cell])[0].means["knn"]
    50.0
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.data, cell.method), []).append(cell)
    return [_summary(data, method, group) for (data, method), group in groups.items()]


def _summary(data: str, method: str, cells: Sequence[Cell]) -> Line:
    values = {name: [getattr(cell, name) for cell in cells] for name in SCORES}
    scored = {name: found for name, found in values.items() if None not in found}
    return Line(
        data=data,
        method=method,
        means={name: 100 * float(np.mean(found)) for name, found in scored.items()},
        stds={name: 100 * float(np.std(found)) for name, found in scored.items()},
        seconds=float(np.median([cell.seconds for cell in cells])),
        flags=tuple(dict.fromkeys(flag for cell in cells for flag in cell.flags)),
        measured=cells[0].measured,
    )


def columns(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the scores that a table shows: those that any row has, in percent.

    The standardised probe has a column only where it differs from the plain one by more than half a point.

    >>> columns([{"few": 90.0, "few_standardised": 90.4}, {"knn": 80.0, "few": 90.0}])
    ['knn', 'few']
    >>> columns([{"few": 90.0, "few_standardised": 90.6}])
    ['few', 'few_standardised']
    """
    differs = any(abs(row["few_standardised"] - row["few"]) > _VISIBLE for row in rows if "few_standardised" in row)
    return [name for name in SCORES if any(name in row for row in rows) and (name != "few_standardised" or differs)]


def verdict(lines: Sequence[Line]) -> str:
    """Say which augmentation does best with few labels, whether it beats raw features, and where noise collapsed.

    >>> raw = Line("toy", "raw", {"few": 80.0, "knn": 90.0}, {"few": 1.0, "knn": 0.0}, 0.0, ())
    >>> fixed = Line("toy", "fixed", {"few": 85.0, "knn": 89.0}, {"few": 1.0, "knn": 0.0}, 1.0, ())
    >>> verdict([raw, fixed])
    'On toy, random noise (σ = 1) is the best learned embedding with few labels, 5.0 points above raw features.'
    """
    data = lines[0].data
    raw = next((line for line in lines if line.method == "raw"), None)
    trained = [line for line in lines if is_trained(line.method)]
    if raw is None or not trained:
        return f"On {data}, nothing was trained, so there is nothing to compare with raw features."
    best = max(trained, key=lambda line: line.means["few"])
    sentence = (
        f"On {data}, {RECIPES[best.method].title} is the best learned embedding with few labels, {_from(raw, best)}"
    )
    shrunk = [line for line in trained if "shrink" in line.flags]
    if shrunk:
        ends = either([f"{RECIPES[line.method].title} ({_from(raw, line)})" for line in shrunk], last="and")
        sentence += f"; the learned noise collapsed to almost nothing in {ends}"
    return sentence + "."


def _from(raw: Line, line: Line) -> str:
    """Say how far a method is from raw features with few labels."""
    gap, of_what = round(line.means["few"] - raw.means["few"], 1), " in R²" if line.measured else ""
    points = f"{abs(gap):.1f} {'point' if abs(gap) == 1 else 'points'} {'above' if gap > 0 else 'below'}"
    return f"{points if gap else 'level with'} raw features{of_what}"
