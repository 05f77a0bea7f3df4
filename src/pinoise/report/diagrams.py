"""Critical-difference diagrams: mean ranks on a line, with a bar over methods that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pinoise.errors import UserError
from pinoise.experiments.ranking import LEVEL, CriticalDifference

_ROW, _BAR = 0.26, 0.11  # inches between two names, and between two bars
_WIDTH, _SIDE = 9.0, 2.6  # inches of a panel, and of the names at either side


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
