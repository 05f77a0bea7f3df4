"""Which methods can be told apart over data sets, as a critical-difference diagram.

Mean ranks stand on a line, with a bar over methods that cannot be told apart (Demšar, 2006; Benavoli et al., 2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from pinoise.errors import UserError
from pinoise.experiments.ranking import rank_methods, score_table
from pinoise.experiments.results import Line
from pinoise.experiments.significance import DECIMALS, holm, wilcoxon

LEVEL = 0.05  # of p-values
_ROW, _BAR = 0.26, 0.11  # inches between two names, and between two bars
_WIDTH, _SIDE = 9.0, 2.6  # inches of a panel, and of the names at either side


@dataclass(frozen=True)
class CriticalDifference:
    """Which methods can be told apart over data sets (Demšar, 2006; Benavoli et al., 2016)."""

    sets: int
    ranks: dict[str, float]  # mean over sets, best first
    friedman: float  # p-value that all rank alike
    p: dict[tuple[str, str], float]  # Wilcoxon of every pair, the better-ranked first, corrected by Holm's method

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The largest runs of neighbours in rank of which no two differ; all methods if Friedman's test says so."""
        order = list(self.ranks)
        return [tuple(order)] if self.friedman >= LEVEL else runs_alike(order, self.p)


def runs_alike(order: Sequence[str], p: Mapping[tuple[str, str], float]) -> list[tuple[str, ...]]:
    """Return the largest runs of two or more neighbours in which every pair has a p-value of at least ``LEVEL``.

    >>> runs_alike("abc", {("a", "b"): 0.2, ("a", "c"): 0.01, ("b", "c"): 0.3})
    [('a', 'b'), ('b', 'c')]
    """
    runs: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(p[other, order[stop]] >= LEVEL for other in order[start:stop]):
            stop += 1
        if stop > max(end, start + 1):
            runs.append(tuple(order[start:stop]))
            end = stop
    return runs


def critical_difference(lines: Sequence[Line], score: str) -> CriticalDifference | None:
    """Compare every ranked method with every other over data sets; nothing below two sets or three methods."""
    ranks, table = rank_methods(lines, score), score_table(lines, score)
    if len(table) < 2 or len(ranks) < 3:
        return None
    columns = {method: [row[method] for row in table.values()] for method in ranks}
    pairs = list(combinations(ranks, 2))
    corrected = holm([wilcoxon(np.subtract(columns[first], columns[second])) for first, second in pairs])
    return CriticalDifference(
        sets=len(table),
        ranks=ranks,
        friedman=friedman(np.transpose(list(columns.values()))),
        p=dict(zip(pairs, corrected, strict=True)),
    )


def friedman(scores: npt.ArrayLike) -> float:
    """Return the p-value of Friedman's test that methods rank alike, 1 where nothing differs.

    Args:
        scores: one of every data set and method, of shape (sets, methods), with at least three methods.

    >>> round(friedman([[1, 2, 3], [1, 2, 3], [1, 2, 3], [2, 1, 3]]), 4)
    0.0388
    """
    table = np.round(np.asarray(scores, dtype=np.float64), DECIMALS)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3:
        raise UserError(f"the scores have shape {table.shape}: Friedman's test needs at least 2 sets and 3 methods.")
    if (table == table[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def rank_diagrams(panels: Mapping[str, CriticalDifference], titles: Mapping[str, str]) -> Figure:
    """Draw one diagram below the other, the best method at the left (Demšar, 2006).

    Args:
        panels: title to what was found.
        titles: of the methods.
    """
    if not panels:
        raise UserError("there is nothing to draw: a diagram needs at least two data sets and three methods.")
    heights = [_height(found) for found in panels.values()]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for number, (title, found) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[number])
        same = "" if found.friedman < LEVEL else ": the methods cannot be told apart"
        axes.set_title(f"{title} (Friedman p = {found.friedman:.1g}{same})", fontsize=10)
        _draw(axes, found, titles)
    return figure


def _height(found: CriticalDifference) -> float:
    return 0.9 + _BAR * len(found.groups) + _ROW * math.ceil(len(found.ranks) / 2)


def _draw(axes: Axes, found: CriticalDifference, titles: Mapping[str, str]) -> None:
    """Draw a scale from 1 to the number of methods, the bars below it, and the names below these."""
    methods, last = list(found.ranks), len(found.ranks)
    inch = (last - 1) / (_WIDTH - 2 * _SIDE)  # in ranks
    left, right = 1 - 0.15 * inch, last + 0.15 * inch
    axes.set_axis_off()
    axes.set_xlim(1 - _SIDE * inch, last + _SIDE * inch)
    axes.set_ylim(0.35 - _height(found), 0.35)  # in inches
    axes.hlines(0, 1, last, color="black", linewidth=1)
    for rank in range(1, last + 1):
        axes.vlines(rank, 0, 0.06, color="black", linewidth=1)
        axes.text(rank, 0.09, str(rank), ha="center", va="bottom", fontsize=8)
    for place, group in enumerate(found.groups):
        height = -0.12 - _BAR * place
        axes.hlines(height, found.ranks[group[0]] - 0.04, found.ranks[group[-1]] + 0.04, color="black", linewidth=3)
    below = -0.15 - _BAR * len(found.groups) - _ROW / 2
    half = math.ceil(last / 2)
    for number, method in enumerate([*methods[:half], *reversed(methods[half:])]):
        at, at_left = found.ranks[method], number < half
        y, edge = below - _ROW * (number if at_left else number - half), left if at_left else right
        axes.plot([at, at, edge], [0, y, y], color="0.5", linewidth=0.8)
        name = titles.get(method, method)
        label = f"{name} {at:.2f}" if at_left else f"{at:.2f} {name}"
        axes.text(
            edge + (-0.05 if at_left else 0.05) * inch,
            y,
            label,
            ha="right" if at_left else "left",
            va="center",
            fontsize=9,
            parse_math=False,
        )
