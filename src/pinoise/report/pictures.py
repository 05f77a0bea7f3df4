"""Pictures of noise as grids: a column for each sample, a row for each thing shown (Figures 1, 3, 6 and 7)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from pinoise.errors import UserError
from pinoise.report.charts import to_png
from pinoise.report.collect import BYTES, NoisySamples
from pinoise.report.page import Picture

Array = npt.NDArray[Any]

# Maps of σ or w, which are not negative, or of μ or ε, which have both signs.
MapKind = Literal["scale", "signed"]

_COLOURS: dict[MapKind, str] = {"scale": "viridis", "signed": "RdBu_r"}
_CELL = 1.1  # inches
_GAP = 0.06
_LETTER = 0.085
_LINE = 18  # letters of a row's title before it is broken
_BAR = 1.0  # inches for a colour bar and its numbers
_WITHIN = 99.0  # percent of pixels within a colour scale


class MapRow(NamedTuple):
    """A row of maps, and what they show."""

    title: str
    maps: Array  # (n, h, w[, c])
    kind: MapKind


class _Row(NamedTuple):
    """A row as it is drawn; without a colour scale it is a row of pictures in their own colours."""

    title: str
    images: Array  # (n, h, w), or (n, h, w, 3) in colour
    colours: str = "gray"
    norm: Normalize | None = None


def noise_grid(
    originals: Array,
    sigma: Array,
    epsilon: Array,
    noisy: Array,
    *,
    mu: Array | None = None,
    titles: Sequence[str] | None = None,
    symbol: str = "σ",
    brightness: tuple[float, float] = BYTES,
) -> Figure:
    """Draw samples, the σ of their noise, one ε for each and x + ε, as Figures 1, 6 and 7 of the paper.

    All arrays have the shape (n, h, w) or (n, h, w, c), in pixel values. Maps of σ share one colour scale from 0, those
    of ε one that is symmetric around 0; both are means over channels where there are several.

    Args:
        originals: the samples x.
        sigma: σ of every pixel.
        epsilon: one draw of the noise for every sample.
        noisy: x + ε, cut off at black and white.
        mu: μ of every pixel if it is learned; it gets a row of its own.
        titles: of the columns.
        symbol: σ, or w for uniform noise.
        brightness: the pixel values of black and white.

    >>> x = np.full((2, 4, 4), 100, dtype=np.uint8)
    >>> figure = noise_grid(x, np.ones((2, 4, 4)), np.ones((2, 4, 4)), x + 1.0)
    >>> sum(len(axes.images) for axes in figure.axes)
    8
    """
    given = {"originals": originals, "sigma": sigma, "epsilon": epsilon, "noisy": noisy}
    _check_shapes(given if mu is None else {**given, "mu": mu})
    maps = [] if mu is None else [MapRow("μ", mu, "signed")]
    maps += [MapRow(symbol, sigma, "scale"), MapRow("ε, one draw", epsilon, "signed")]
    drawn = [_map_row(row, colour_scale(row.kind, [row.maps])) for row in maps]
    first, last = _Row("original", to_shown(originals, brightness)), _Row("x + ε", to_shown(noisy, brightness))
    return _draw([first, *drawn, last], titles)


def compare_grid(
    originals: Array,
    rows: Sequence[MapRow],
    *,
    titles: Sequence[str] | None = None,
    brightness: tuple[float, float] = BYTES,
) -> Figure:
    """Draw samples above the maps of several kinds of noise, as Figure 4 of the paper.

    All rows of one kind share one colour scale, so that they can be compared.

    Args:
        originals: the samples, (n, h, w) or (n, h, w, c), in pixel values.
        rows: what to draw below them, in the same units.
        titles: of the columns.
        brightness: the pixel values of black and white.
    """
    _check_shapes({"originals": originals, **{row.title: row.maps for row in rows}})
    norms = {kind: colour_scale(kind, [row.maps for row in rows if row.kind == kind]) for kind in _COLOURS}
    drawn = [_map_row(row, norms[row.kind]) for row in rows]
    return _draw([_Row("original", to_shown(originals, brightness)), *drawn], titles)


def to_map(values: Array) -> Array:
    """Return one number for each pixel, (n, h, w): the mean over channels where there are several.

    >>> to_map(np.array([[[[1.0, 3.0]]]])).tolist()
    [[[2.0]]]
    """
    return values if values.ndim == 3 else values.mean(axis=-1, dtype=np.float64)


def to_shown(images: Array, brightness: tuple[float, float] = BYTES) -> Array:
    """Return pictures as a screen can show them: whole numbers from 0 to 255, in grey (n, h, w) or colour (n, h, w, 3).

    What is darker than black or brighter than white is cut off. Channels that are neither one nor three are shown as
    their mean.

    >>> to_shown(np.array([[[-3.0, 99.6, 300.0]]])).tolist()
    [[[0, 100, 255]]]
    """
    seen = images if images.ndim == 4 and images.shape[-1] == 3 else to_map(images)
    black, white = brightness
    whole: Array = np.clip(np.rint((seen - black) * (255 / ((white - black) or 1.0))), 0, 255).astype(np.uint8)
    return whole


def colour_scale(kind: MapKind, maps: Sequence[Array]) -> Normalize:
    """Return the one colour scale of maps: from 0, or as far below 0 as above it, to a size that few pixels exceed.

    >>> scale, signed = (colour_scale(kind, [np.array([[[-2.0, 2.0]]])]) for kind in ("scale", "signed"))
    >>> scale.vmin, scale.vmax, signed.vmin, signed.vmax
    (0.0, 2.0, -2.0, 2.0)
    """
    most = 1.0
    if maps:
        sizes = np.abs(np.concatenate([to_map(values).ravel() for values in maps]))
        # A few extreme pixels must not hide all others.
        most = float(np.percentile(sizes, _WITHIN)) or float(sizes.max()) or most
    return Normalize(-most if kind == "signed" else 0.0, most)


def _map_row(row: MapRow, norm: Normalize) -> _Row:
    several = row.maps.ndim == 4 and row.maps.shape[-1] > 1
    title = f"{row.title}\n(channels' mean)" if several else row.title
    return _Row(title, to_map(row.maps), _COLOURS[row.kind], norm)


def _check_shapes(given: dict[str, Array]) -> None:
    first, *others = given.items()
    name, array = first
    if array.ndim not in (3, 4) or 0 in array.shape:
        raise UserError(f"{name} has the shape {array.shape}: pictures have (n, h, w) or (n, h, w, c).")
    for other, values in others:
        if values.shape != array.shape:
            raise UserError(f"{other} has the shape {values.shape} and {name} {array.shape}: they must be the same.")


def _draw(rows: Sequence[_Row], titles: Sequence[str] | None) -> Figure:
    columns, height, width = rows[0].images.shape[:3]
    if titles is not None and len(titles) != columns:
        raise UserError(f"there are {len(titles)} titles for {columns} columns: give one for each.")
    labels = ["\n".join(part for line in row.title.split("\n") for part in textwrap.wrap(line, _LINE)) for row in rows]
    left = 0.2 + _LETTER * max(len(line) for label in labels for line in label.split("\n"))
    top, cells = 0.35 if titles else 0.1, columns * (_CELL + _GAP)
    tall = len(rows) * (_CELL * min(4.0, max(0.25, height / width)) + _GAP)
    wide, high = left + cells + _BAR, top + tall + 0.1
    figure = Figure(figsize=(wide, high))
    inside = {"left": left / wide, "right": (left + cells) / wide, "bottom": 0.1 / high, "top": 1 - top / high}
    grid = figure.subplots(len(rows), columns, squeeze=False, gridspec_kw={**inside, "wspace": 0.05, "hspace": 0.05})
    for row, label, line in zip(rows, labels, grid, strict=True):
        for axes, image in zip(line, row.images, strict=True):
            shown = axes.imshow(image, cmap=row.colours, norm=row.norm or Normalize(*BYTES), aspect="auto")
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9, parse_math=False)
        if row.norm is not None:
            _draw_bar(line[-1].inset_axes((1.05, 0, 0.1, 1)), shown, row)
    for axes, title in zip(grid[0], titles or (), strict=False):
        axes.set_title(textwrap.shorten(title, 16, placeholder="…"), fontsize=8, parse_math=False)
    return figure


def _draw_bar(axes: Axes, shown: AxesImage, row: _Row) -> None:
    """Draw a row's colour scale, with arrows and the largest value where pixels lie beyond it."""
    most = float(np.abs(row.images).max())
    signed = row.colours == _COLOURS["signed"]
    beyond = row.norm is not None and row.norm.vmax is not None and most > row.norm.vmax
    shown.figure.colorbar(shown, cax=axes, extend=("both" if signed else "max") if beyond else "neither")
    largest = f"\nup to {'±' if signed else ''}{most:,.{0 if most >= 100 else 2}f}" if beyond else ""
    axes.set_ylabel(f"pixel values{largest}", fontsize=7)
    axes.tick_params(labelsize=7)


def draw_noise(name: str, noisy: NoisySamples, *, caption: str = "") -> Picture:
    """Draw the noise of samples that are pictures."""
    figure = noise_grid(
        noisy.originals,
        noisy.sigma,
        noisy.epsilon,
        noisy.noisy,
        mu=noisy.mu if noisy.learns_mean else None,
        titles=noisy.labels,
        symbol=noisy.symbol,
        brightness=noisy.brightness,
    )
    mean = ", μ" if noisy.learns_mean else ""
    alt = (
        f"{len(noisy.originals)} {noisy.part} samples in columns; in rows the originals{mean}, {noisy.symbol} of "
        f"every pixel (mean {noisy.sigma.mean():.3g}, largest {noisy.sigma.max():.3g}), one draw of ε, and x + ε."
    )
    scales = f"{noisy.symbol} and ε are in pixel values; a colour scale holds for its whole row."
    return Picture(name, "png", to_png(figure), alt, caption=f"{caption}{scales}")


def draw_comparison(name: str, runs: Sequence[tuple[str, NoisySamples]]) -> Picture:
    """Draw the noise of runs on the same pictures, as Figure 4 of the paper."""
    first = runs[0][1]
    rows = [row for title, noisy in runs for row in _map_rows(title, noisy)]
    figure = compare_grid(first.originals, rows, titles=first.labels, brightness=first.brightness)
    titles = "; ".join(row.title.replace("\n", " ") for row in rows)
    alt = f"The same samples in columns; in rows the originals, then {titles}."
    caption = "All maps of σ and w share one colour scale, all maps of μ another; values are pixel values."
    return Picture(name, "png", to_png(figure), alt, caption=caption)


def _map_rows(name: str, noisy: NoisySamples) -> list[MapRow]:
    """Return the rows of Figure 4 that a run gives: learned μ and σ, w of uniform noise, or σ with μ = 0."""
    if noisy.learns_mean:
        return [
            MapRow(f"{name}:\nlearned μ", noisy.mu, "signed"),
            MapRow(f"{name}:\n{noisy.symbol}, μ learned", noisy.sigma, "scale"),
        ]
    what = "w, uniform" if noisy.symbol == "w" else f"{noisy.symbol}, μ = 0"
    return [MapRow(f"{name}:\n{what}", noisy.sigma, "scale")]
