from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from pinoise.errors import UserError
from pinoise.experiments.ranking import CriticalDifference
from pinoise.report import rank_diagrams, to_png


def found(p: float = 0.2) -> CriticalDifference:
    ranks = {"a": 1.5, "b": 2.0, "c": 3.25, "d": 3.5, "e": 4.75}
    return CriticalDifference(9, ranks, 0.001, {pair: 0.01 if "a" in pair else p for pair in combinations(ranks, 2)})


def test_every_method_is_named_with_its_rank_and_a_bar_joins_those_alike() -> None:
    figure = rank_diagrams({"few-label": found(), "kNN": found(0.01)}, {"a": "ours $x$"})
    first, second = figure.axes
    texts = [text.get_text() for text in first.texts]
    assert {"1", "5", "ours $x$ 1.50", "b 2.00", "4.75 e", "3.50 d"} <= set(texts)
    assert first.get_title() == "few-label (Friedman p = 0.001)"

    def bars(axes: Axes) -> list[tuple[float, float]]:
        lines = [item for item in axes.collections if isinstance(item, LineCollection)]
        thick = [item for item in lines if np.max(item.get_linewidth()) == 3]
        ends = [np.asarray(path.vertices)[:, 0] for line in thick for path in line.get_paths()]
        return [(float(start), float(end)) for start, end in ends]

    assert bars(first) == [pytest.approx((1.96, 4.79))]
    assert bars(second) == []


def test_a_diagram_is_a_png_and_the_same_again() -> None:
    pictures = [to_png(rank_diagrams({"few-label": found()}, {})) for _ in range(2)]
    assert pictures[0][:8] == b"\x89PNG\r\n\x1a\n"
    assert pictures[0] == pictures[1]


def test_names_do_not_lie_on_one_another() -> None:
    figure = rank_diagrams({"few-label": found()}, {})
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(UserError, match="a diagram needs at least two data sets and three methods"):
        rank_diagrams({}, {})
