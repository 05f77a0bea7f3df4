"""Charts of a run: σ of every feature, and curves over the epochs."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pinoise.errors import UserError
from pinoise.training.callbacks import Record

MOST_FEATURES = 30
LOW, HIGH = 5.0, 95.0  # percentiles of samples between which the spread of σ is drawn

_DOTS_PER_INCH = 130
_NAME, _HEAD = 38, 24  # letters of a feature's name, and of the beginning of a shortened one
_BLUE, _ORANGE, _GREY = "#1f5fa8", "#c8551b", "#444444"
_MARKERS = "osD^vP*X"
COLOURS = (_BLUE, _ORANGE, "#2b7a3d", "#8a3fa0", "#937000", "#00808a", "#b0396b", _GREY)
MARKED = 30  # points of a curve from which they are not marked


class Ranking(NamedTuple):
    """The features with the most noise, largest first: their σ over samples."""

    names: list[str]
    columns: list[int]  # their places among all features, flattened
    mean: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]  # below it lie 5 % of the samples
    high: npt.NDArray[np.float64]  # above it lie 5 % of the samples


class Panel(NamedTuple):
    """One chart of curves over the epochs."""

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
    shape = sigma.shape[1:]
    flat = sigma.reshape(len(sigma), -1).astype(np.float64)
    names = feature_names(shape) if names is None else names
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


def sigma_bars(ranking: Ranking, *, symbol: str = "σ") -> Figure:
    """Draw a bar for every ranked feature, and its spread over samples as a thin line."""
    figure, axes, places = _axes_for(ranking.names)
    axes.barh(places, ranking.mean, color=_BLUE, height=0.7)
    axes.hlines(places, ranking.low, ranking.high, color="black", linewidth=1)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"mean {symbol} in standard deviations of the feature; line: {LOW:.0f} to {HIGH:.0f} % of samples")
    return figure


def compare_bars(names: Sequence[str], series: Sequence[tuple[str, npt.NDArray[Any]]], *, symbol: str) -> Figure:
    """Draw a dot for every feature and run: the features that are largest in any of the runs.

    Args:
        names: of all features.
        series: the title of each run and its σ, (m, *shape).
        symbol: what is drawn.
    """
    if not series:
        raise UserError("there is nothing to compare: give the σ of at least one run.")
    means = np.stack([sigma.reshape(len(sigma), -1).mean(axis=0) for _, sigma in series])  # (runs, d)
    ranking = rank_features(means.max(axis=0, keepdims=True), names)
    figure, axes, places = _axes_for(ranking.names)
    for number, (title, _) in enumerate(series):
        colour, marker = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
        axes.scatter(means[number, ranking.columns], places, s=28, label=title, color=colour, marker=marker)
    axes.set_xlim(left=0)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"mean {symbol} in standard deviations of the feature")
    for text in axes.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
    return figure


def panels(history: Sequence[Record]) -> list[Panel]:
    """Return the curves of a run's history, without values that were not measured and panels that have none.

    >>> history = [Record(epoch=1, step=5, loss=2.0, metrics={"sigma_mean": math.nan}, seconds=1.0)]
    >>> panels(history)
    [Panel(title='Loss', lines={'loss': ([1], [2.0])})]
    """
    found = []
    measured = [(record.epoch, {**record.metrics, "loss": record.loss}) for record in history]
    for title, columns in _PANELS.items():
        lines: dict[str, tuple[list[int], list[float]]] = {}
        for column, label in columns.items():
            kept = [
                (epoch, values[column]) for epoch, values in measured if math.isfinite(values.get(column, math.nan))
            ]
            line = ([epoch for epoch, _ in kept], [value for _, value in kept])
            if kept and line not in lines.values():  # an objective that adds nothing has a loss of ℓ alone
                lines[label] = line
        if lines:
            found.append(Panel(title, lines))
    return found


def curves(history: Sequence[Record]) -> Figure:
    """Draw loss, size of the noise and information over the epochs at which they were measured."""
    shown = panels(history)
    if not shown:
        raise UserError("the history has no finite number: there is no curve to draw.")
    return draw_panels(shown)


def colours_of(shown: Sequence[Panel]) -> dict[str, str]:
    """Return a colour for every curve, the same where panels share one; they come again only after all were used.

    >>> colours = colours_of([Panel("a", {"x": ([1], [1.0])}), Panel("b", {"y": ([1], [1.0]), "x": ([1], [2.0])})])
    >>> list(colours), len(set(colours.values()))
    (['x', 'y'], 2)
    """
    labels = dict.fromkeys(label for panel in shown for label in panel.lines)
    return {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(labels)}


def draw_panels(shown: Sequence[Panel], *, x: str = "epoch") -> Figure:
    """Draw panels of curves side by side; ``x`` is what they are drawn over."""
    figure = Figure(figsize=(4.2 * len(shown), 3.2), layout="constrained")
    colours = colours_of(shown)
    for number, panel in enumerate(shown):
        axes = figure.add_subplot(1, len(shown), number + 1)
        for label, (epochs, values) in panel.lines.items():
            marker = "o" if len(epochs) < MARKED else None
            axes.plot(epochs, values, label=label, color=colours[label], marker=marker, markersize=3)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(x)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(linewidth=0.4)
        axes.legend(fontsize=8)
    return figure


def to_png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file, the same for the same figure."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the page shows the names in full
        figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def shortened(name: str) -> str:
    """Return a name that fits beside a bar; long names mostly differ at their ends, so the middle is cut.

    >>> shortened("acceleration of the body, band energy 25 to 32")
    'acceleration of the body…ergy 25 to 32'
    """
    name = " ".join(name.split())
    return name if len(name) <= _NAME else f"{name[:_HEAD]}…{name[_HEAD + 1 - _NAME :]}"


def _axes_for(names: Sequence[str]) -> tuple[Figure, Axes, npt.NDArray[np.int64]]:
    """Return a figure, its axes with a named line for every feature, and the places of these lines."""
    figure = Figure(figsize=(8, 0.9 + 0.24 * max(4, len(names))), layout="constrained")
    axes, places = figure.add_subplot(), np.arange(len(names))
    axes.set_yticks(places, [shortened(name) for name in names], fontsize=8)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the largest on top
    return figure, axes, places
