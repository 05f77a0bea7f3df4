"""Charts as SVG, and the ranking of features by their noise."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pinoise.errors import UserError
from pinoise.report.page import Picture
from pinoise.training.callbacks import Record

MOST_FEATURES = 30
LOW, HIGH = 5, 95  # percentiles of samples that tell the spread of σ

_DOTS_PER_INCH = 130
_COLOURS = ("#1f5fa8", "#c8551b", "#2b7a3d", "#8a3fa0", "#937000", "#00808a", "#b0396b", "#444444")
_MARKED = 30  # points of a curve from which they are not marked


class Ranking(NamedTuple):
    """The features with the most noise, largest first: their σ over samples."""

    names: list[str]
    columns: list[int]  # their places among all features, flattened
    mean: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]  # below it lie 5 % of the samples
    high: npt.NDArray[np.float64]  # above it lie 5 % of the samples


class Panel(NamedTuple):
    """One chart of curves."""

    title: str
    lines: dict[str, tuple[list[int], list[float]]]  # legend to epochs and values, where they were measured


_PANELS = {
    "Loss": {"loss": "loss", "contrast": "contrastive loss ℓ alone"},
    "Size of the noise, in standard deviations": {"sigma_mean": "mean σ", "sigma_median": "median σ"},
    "Information in the views, in nats": {"information": "exact information", "plug_in": "plug-in information"},
}


def rank_features(sigma: npt.NDArray[Any], names: Sequence[str] | None = None, *, most: int = MOST_FEATURES) -> Ranking:
    """Rank features by their mean σ over samples.

    Args:
        sigma: of samples, (m, *shape).
        names: of the features; they are numbered if None.
        most: how many are kept.

    >>> rank_features(np.array([[1.0, 3.0], [1.0, 5.0]]), ["age", "income"]).names
    ['income', 'age']
    """
    if sigma.ndim < 2 or 0 in sigma.shape:
        raise UserError(f"σ has the shape {sigma.shape}: give a row for each sample.")
    flat = sigma.reshape(len(sigma), -1).astype(np.float64)
    names = feature_names(sigma.shape[1:]) if names is None else names
    if len(names) != flat.shape[1]:
        raise UserError(f"there are {len(names)} names for {flat.shape[1]} features: give one for each.")
    mean = flat.mean(axis=0)
    order = np.argsort(-mean, kind="stable")[:most]
    low, high = np.percentile(flat[:, order], [LOW, HIGH], axis=0)
    return Ranking([str(names[j]) for j in order], [int(j) for j in order], mean[order], low, high)


def feature_names(shape: tuple[int, ...]) -> list[str]:
    """Return a name for every feature of a sample, by its place.

    >>> feature_names((2,)), feature_names((1, 2))
    (['feature 0', 'feature 1'], ['feature 0, 0', 'feature 0, 1'])
    """
    return ["feature " + ", ".join(map(str, place)) for place in np.ndindex(*shape)]


def panels(history: Sequence[Record]) -> list[Panel]:
    """Return the curves of a run's history, without values that were not measured and panels that have none.

    >>> history = [Record(epoch=1, step=5, loss=2.0, metrics={"sigma_mean": math.nan}, seconds=1.0)]
    >>> panels(history)
    [Panel(title='Loss', lines={'loss': ([1], [2.0])})]
    """
    measured = [(record.epoch, {**record.metrics, "loss": record.loss}) for record in history]
    return [Panel(title, lines) for title, columns in _PANELS.items() if (lines := _lines(measured, columns))]


def _lines(
    measured: Sequence[tuple[int, Mapping[str, float]]], columns: Mapping[str, str]
) -> dict[str, tuple[list[int], list[float]]]:
    lines: dict[str, tuple[list[int], list[float]]] = {}
    for column, label in columns.items():
        kept = [(epoch, values[column]) for epoch, values in measured if math.isfinite(values.get(column, math.nan))]
        line = ([epoch for epoch, _ in kept], [value for _, value in kept])
        if kept and line not in lines.values():  # an objective that adds nothing has a loss of ℓ alone
            lines[label] = line
    return lines


def draw_curves(name: str, panel: Panel, *, x: str = "epoch") -> Picture:
    """Draw the curves of a panel; ``x`` is what they are drawn over."""
    figure = Figure(figsize=(4.2, 3), layout="constrained")
    axes = figure.add_subplot()
    for number, (label, (epochs, values)) in enumerate(panel.lines.items()):
        marker = "o" if len(epochs) < _MARKED else None
        axes.plot(epochs, values, label=label, color=_COLOURS[number % len(_COLOURS)], marker=marker, markersize=3)
    axes.set_xlabel(x)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(linewidth=0.4)
    for text in axes.legend(fontsize=9).get_texts():
        text.set_parse_math(False)
    ends = "; ".join(f"{label} {values[-1]:.4g}" for label, (_, values) in panel.lines.items())
    return chart(name, figure, alt=f"{panel.title} over {x}. Last values: {ends}.", title=panel.title)


def chart(name: str, figure: Figure, *, alt: str, title: str, points: Sequence[str] = ()) -> Picture:
    """Return a figure as an SVG that can stand in a page beside others.

    Args:
        name: of the picture.
        figure: what is drawn.
        alt: the same in words.
        title: stands above it.
        points: a text for every dot of a scatter plot, which browsers show under the pointer.
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\1{name}-", svg)  # no name stands twice in a page
    if points:
        titles = (f"<title>{escape(text)}</title></use>" for text in points)
        svg = re.sub(r"(<use [^>]*)/>", lambda dot: f"{dot[1]}>{next(titles)}", svg, count=len(points))
    return Picture(name, "svg", svg.encode(), alt, title)


def to_png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file, the same for the same figure."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the page shows the names in full
        figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
