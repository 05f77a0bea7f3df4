"""The embedding as a map in two dimensions, beside that of the raw features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from pinoise.data.dataset import Dataset, Part
from pinoise.evaluation import embed
from pinoise.evaluation.rivals import reduce_by_umap
from pinoise.experiments.scoring import raw_rows
from pinoise.experiments.sources import shown_part
from pinoise.model import Model
from pinoise.report.charts import chart
from pinoise.report.page import Picture

MOST_POINTS = 800
FEWEST_POINTS = 3

_CLASSES = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1"),
    *("#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#2f4b7c"),
)
_OTHER = "#a9a9a9"  # classes beyond the palette
_SCALE = "viridis"
_SCALE_STEPS = 5  # values of a measurement that the key of a map names

Points = npt.NDArray[np.float64]


class Colouring(NamedTuple):
    """The colour of every point, what is said of it, and the key: colours and what they mean."""

    colours: list[str]
    texts: list[str]
    key: list[tuple[str, str]]


class Maps(NamedTuple):
    """Maps of one part of a run's data."""

    part: str  # "test" or "training"
    rows: int  # that are shown, or that are too few
    pictures: list[Picture]
    key: list[tuple[str, str]]


def draw_maps(run: Model, data: Dataset) -> Maps:
    """Draw at most ``MOST_POINTS`` test rows, or training rows if there are no others."""
    part, name = shown_part(data, most=MOST_POINTS)
    if len(part) < FEWEST_POINTS:
        return Maps(name, len(part), [], [])
    raw, (rows,) = raw_rows(part, spans=data.spans)
    of = {
        "Raw features": embed(raw, rows),
        "Learned embedding": embed(run.embedding, run.rows(part.x, where=data.name)),
    }
    colouring = colour(part, data.class_names)
    reductions: dict[str, Callable[[np.ndarray], Points]] = {"PCA": by_pca}
    if find_spec("umap"):
        reductions["UMAP"] = by_umap
    pictures = [
        draw_map(f"map-{method}-{number}".lower(), f"{what}, by {method}", reduce(z), colouring)
        for method, reduce in reductions.items()
        for number, (what, z) in enumerate(of.items())
    ]
    return Maps(name, len(part), pictures, colouring.key)


def draw_map(name: str, title: str, points: Points, colouring: Colouring) -> Picture:
    """Draw points in their colours, without those far away, of which the caption tells."""
    (left, right), (bottom, top), outside = frame(points)
    figure = Figure(figsize=(4.2, 3.2), layout="constrained")
    axes = figure.add_subplot(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    axes.spines[:].set_color("#e3e6ec")
    axes.scatter(points[:, 0], points[:, 1], c=colouring.colours, s=11, linewidths=0, alpha=0.85)
    picture = chart(name, figure, alt=f"{len(points)} rows: {title}.", title=title, points=colouring.texts)
    return replace(picture, caption=f"{outside} rows are too far away to be shown." if outside else "")


def colour(part: Part, class_names: tuple[str, ...] | None) -> Colouring:
    """Return colours by class, by value, or one for all.

    >>> found = colour(Part(np.zeros((3, 1)), np.array([0, 1, 1])), ("cat", "dog"))
    >>> found.texts[0], [text for _, text in found.key]
    ('row 0 · cat', ['dog', 'cat'])
    """
    numbers = range(len(part)) if part.origin is None else np.asarray(part.origin.rows).tolist()
    names = [f"row {number}" for number in numbers] if part.names is None else list(part.names)
    if part.y is None:
        return Colouring([_CLASSES[0]] * len(part), names, [])
    if part.y.dtype.kind == "f":
        return _by_value(np.asarray(part.y, dtype=np.float64), names)
    labels = [f"class {number}" if class_names is None else class_names[number] for number in part.y.tolist()]
    ranked = [label for label, _ in Counter(labels).most_common()]
    palette = dict(zip(ranked, _CLASSES, strict=False))
    key = [(shade, label) for label, shade in palette.items()]
    if len(ranked) > len(palette):
        key.append((_OTHER, f"other classes: {len(ranked) - len(palette)}"))
    texts = [f"{name} · {label}" for name, label in zip(names, labels, strict=True)]
    return Colouring([palette.get(label, _OTHER) for label in labels], texts, key)


def _by_value(values: Points, names: list[str]) -> Colouring:
    """Return colours by rank, as a few large values would leave one colour to all others."""
    shades = colormaps[_SCALE]
    order = np.argsort(np.argsort(values, kind="stable")) / max(1, len(values) - 1)
    steps = np.linspace(0, 1, _SCALE_STEPS)
    key = [(to_hex(shades(step)), f"{np.quantile(values, step):.3g}") for step in steps]
    texts = [f"{name} · {value:.4g}" for name, value in zip(names, values, strict=True)]
    return Colouring([to_hex(shades(place)) for place in order], texts, key)


def by_pca(z: np.ndarray) -> Points:
    """Return the first two principal components; of a single feature, the second is 0.

    They are those of the 98 % of rows that are nearest to the mean, as one far row would take a component for itself.

    >>> by_pca(np.array([[0.0], [2.0]])).round(6).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    z = np.asarray(z, dtype=np.float64)
    away = np.linalg.norm(z - z.mean(axis=0), axis=1)
    near = z[away <= np.quantile(away, 0.98)]
    count = min(2, *near.shape)
    found: Points = PCA(count, random_state=0).fit(near).transform(z)
    return np.pad(found, ((0, 0), (0, 2 - count)))


def by_umap(z: np.ndarray) -> Points:
    """Return the places that umap-learn gives to rows in two dimensions."""
    return np.asarray(reduce_by_umap(z, z[:1], components=2)[0], dtype=np.float64)


class Frame(NamedTuple):
    """What a map shows."""

    x: tuple[float, float]
    y: tuple[float, float]
    outside: int  # points that it does not show


def frame(points: Points) -> Frame:
    """Return a frame around points that a few far ones do not shrink to a spot.

    It ends at the outermost point, but not farther from the middle 96 % than half of their width.

    >>> line = np.linspace(0, 1, 101)
    >>> frame(np.stack([np.append(line, 50), np.append(line, 0)], axis=1)).outside
    1
    """
    low, high = np.quantile(points, (0.02, 0.98), axis=0)
    reach = (high - low) / 2
    first, last = np.maximum(points.min(axis=0), low - reach), np.minimum(points.max(axis=0), high + reach)
    edge = np.where(last > first, 0.04 * (last - first), 1.0)
    outside = int(((points < first) | (points > last)).any(axis=1).sum())
    (left, bottom), (right, top) = (first - edge).tolist(), (last + edge).tolist()
    return Frame((left, right), (bottom, top), outside)
