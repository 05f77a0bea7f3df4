"""The embedding as a map in two dimensions, beside that of the raw features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

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
from pinoise.report import interactive
from pinoise.report.charts import to_png
from pinoise.report.page import Chart, Key, PageSection, Picture
from pinoise.training.load import Run

MOST_POINTS = 800
RAW, LEARNED = "raw features", "learned embedding"

_CLASSES = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#e15759",
    "#b07aa1",
    "#76b7b2",
    "#edc948",
    "#ff9da7",
    "#9c755f",
    "#2f4b7c",
)
_OTHER = "#a9a9a9"  # classes beyond the palette, and rows without a label
_SCALE = "viridis"
_SCALE_STEPS = 5  # values of a measurement that the key of a map names

Points = npt.NDArray[np.float64]
Reduction = Callable[[np.ndarray], Points]


class Colouring(NamedTuple):
    """The colour of every point, what is said of it, and the key to the colours."""

    colours: list[str]
    texts: list[str]
    key: list[Key]


def maps_section(run: Run, data: Dataset) -> PageSection:
    """Return maps of at most ``MOST_POINTS`` test rows, or of training rows if there are no others."""
    part, name = (data.train, "training") if data.test is None else (data.test, "test")
    if len(part) < 3:
        return PageSection("Map", [f"{len(part)} {name} rows are too few for a map."])
    size = min(len(part), MOST_POINTS)
    part = part.take(np.arange(size, dtype=np.int64) * len(part) // size)
    raw, (rows,) = raw_rows(part, spans=data.spans)
    of = {RAW: embed(raw, rows), LEARNED: embed(run.embedding, run.rows(part.x, where=data.name))}
    colouring = colour(part, data.class_names)
    pictures = [
        _picture(method, {what: reduce(z) for what, z in of.items()}, colouring, f"{size:,} {name} rows")
        for method, reduce in _reductions().items()
    ]
    sentence = "Near points are alike. Colours are used here only; the embedding was learned without labels."
    return PageSection("Map", [sentence] if part.y is not None else ["Near points are alike."], pictures)


def colour(part: Part, class_names: tuple[str, ...] | None) -> Colouring:
    """Return colours by class, by value, or one for all.

    >>> found = colour(Part(np.zeros((3, 1)), np.array([0, 1, 1])), ("cat", "dog"))
    >>> found.texts[0], [key.text for key in found.key]
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
    key = [Key(shade, label) for label, shade in palette.items()]
    if len(ranked) > len(palette):
        key.append(Key(_OTHER, f"other classes: {len(ranked) - len(palette)}"))
    texts = [f"{name} · {label}" for name, label in zip(names, labels, strict=True)]
    return Colouring([palette.get(label, _OTHER) for label in labels], texts, key)


def _by_value(values: Points, names: list[str]) -> Colouring:
    """Return colours by rank, as a few large values would leave one colour to all others."""
    shades = colormaps[_SCALE]
    order = np.argsort(np.argsort(values, kind="stable")) / max(1, len(values) - 1)
    steps = np.linspace(0, 1, _SCALE_STEPS)
    key = [Key(to_hex(shades(step)), f"{np.quantile(values, step):.3g}") for step in steps]
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
    sides, inside = [], np.ones(len(points), dtype=np.bool_)
    for place in points.T:
        low, high = np.quantile(place, (0.02, 0.98))
        reach = (high - low) / 2
        first, last = max(place.min(), low - reach), min(place.max(), high + reach)
        inside &= (place >= first) & (place <= last)
        edge = 0.04 * (last - first) or 1.0
        sides.append((float(first - edge), float(last + edge)))
    return Frame(sides[0], sides[1], int((~inside).sum()))


def _reductions() -> Mapping[str, Reduction]:
    return {"PCA": by_pca, **({"UMAP": by_umap} if find_spec("umap") else {})}


def _picture(method: str, places: Mapping[str, Points], colouring: Colouring, rows: str) -> Picture:
    how = "the first two principal components" if method == "PCA" else "two dimensions by UMAP"
    frames = {what: frame(points) for what, points in places.items()}
    beyond = [f"{found.outside} of the {what}" for what, found in frames.items() if found.outside]
    left_out = f" Too far away to be shown: {' and '.join(beyond)}." if beyond else ""
    return Picture(
        name=f"map_{method.lower()}",
        png=to_png(_drawn(places, frames, colouring)),
        alt=f"Two maps of {rows}, by {method}: of the raw features and of the learned embedding.",
        caption=f"{rows} in {how}. Axes have no unit.{left_out}",
        charts=[
            Chart(
                what.capitalize(),
                interactive.map_html(points, frames[what], colouring, name=f"{method}-{number}".lower()),
            )
            for number, (what, points) in enumerate(places.items())
        ],
        key=colouring.key,
    )


def _drawn(places: Mapping[str, Points], frames: Mapping[str, Frame], colouring: Colouring) -> Figure:
    figure = Figure(figsize=(9, 4.3), layout="constrained")
    for number, (what, points) in enumerate(places.items()):
        axes: Any = figure.add_subplot(1, len(places), number + 1)
        axes.scatter(points[:, 0], points[:, 1], c=colouring.colours, s=14, linewidths=0, alpha=0.85)
        axes.set_title(what.capitalize(), fontsize=10)
        axes.set_xlim(frames[what].x)
        axes.set_ylim(frames[what].y)
        axes.set_xticks([])
        axes.set_yticks([])
    for key in colouring.key:
        figure.axes[0].scatter([], [], c=key.colour, s=20, label=key.text)
    if colouring.key:
        legend = figure.legend(loc="outside lower center", ncols=min(5, len(colouring.key)), fontsize=8, frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure
