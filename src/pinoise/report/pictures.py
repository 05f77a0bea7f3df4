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

Array = npt.NDArray[Any]

BYTES = (0.0, 255.0)
"""Black and white of pictures that are stored as bytes."""

SCALE_COLOURS, SIGNED_COLOURS = "viridis", "RdBu_r"

_CELL = 1.1  # inches
_GAP = 0.06
_LETTER = 0.085
_LINE = 18  # letters of a row's title before it is broken
_BAR = 1.0  # inches for a colour bar and its numbers
_WITHIN = 99.0  # percent of pixels within a colour scale


class MapRow(NamedTuple):
    """A row of a comparison: maps of σ or w, which are ``scale``, or of μ or ε, which are ``signed``."""

    title: str
    maps: Array  # (n, h, w[, c])
    kind: Literal["scale", "signed"]


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
        noisy: x + ε, shown as far as a pixel can show it.
        mu: μ of every pixel, where it is learned; it gets a row of its own.
        titles: of the columns.
        symbol: w instead of σ for uniform noise.
        brightness: the pixel values of black and white.

    >>> x = np.full((2, 4, 4), 100, dtype=np.uint8)
    >>> figure = noise_grid(x, np.ones((2, 4, 4)), np.ones((2, 4, 4)), x + 1.0)
    >>> sum(len(axes.images) for axes in figure.axes)
    8
    """
    given = {"originals": originals, "sigma": sigma, "epsilon": epsilon, "noisy": noisy}
    _check_shapes(given if mu is None else {**given, "mu": mu})
    rows = [_Row("original", to_shown(originals, brightness))]
    if mu is not None:
        rows.append(_signed_row("μ", mu, signed_norm([mu])))
    rows.append(_scale_row(symbol, sigma, scale_norm([sigma])))
    rows.append(_signed_row("ε, one draw", epsilon, signed_norm([epsilon])))
    rows.append(_Row("x + ε", to_shown(noisy, brightness)))
    return _draw(rows, titles)


def compare_grid(
    originals: Array,
    rows: Sequence[MapRow],
    *,
    titles: Sequence[str] | None = None,
    brightness: tuple[float, float] = BYTES,
) -> Figure:
    """Draw samples above the maps of several kinds of noise, as Figure 3 of the paper.

    All rows of one kind share one colour scale, so that they can be compared.

    Args:
        originals: the samples, (n, h, w) or (n, h, w, c), in pixel values.
        rows: what to draw below them, in the same units.
        titles: of the columns.
        brightness: the pixel values of black and white.
    """
    if not rows:
        raise UserError("there is nothing to compare: give at least one row of maps.")
    _check_shapes({"originals": originals, **{row.title: row.maps for row in rows}})
    scales = [row.maps for row in rows if row.kind == "scale"]
    signs = [row.maps for row in rows if row.kind == "signed"]
    of_scales, of_signs = scale_norm(scales), signed_norm(signs)
    drawn = [_Row("original", to_shown(originals, brightness))]
    for row in rows:
        if row.kind == "scale":
            drawn.append(_scale_row(row.title, row.maps, of_scales))
        else:
            drawn.append(_signed_row(row.title, row.maps, of_signs))
    return _draw(drawn, titles)


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


def scale_norm(maps: Sequence[Array]) -> Normalize:
    """Return the one colour scale of maps that are not negative, from 0 to what few of their pixels exceed.

    >>> scale_norm([np.array([[[1.0]]]), np.array([[[5.0]]])]).vmin
    0.0
    """
    return Normalize(0.0, _usual_size(maps))


def signed_norm(maps: Sequence[Array]) -> Normalize:
    """Return the one colour scale of maps with both signs, as far below 0 as above it.

    >>> norm = signed_norm([np.array([[[-2.0, 2.0]]])])
    >>> norm.vmin, norm.vmax
    (-2.0, 2.0)
    """
    most = _usual_size(maps)
    return Normalize(-most, most)


def _usual_size(maps: Sequence[Array]) -> float:
    """The size that is exceeded by 1 % of the pixels, so that a few extreme ones do not hide all others."""
    if not maps:
        return 1.0
    sizes = np.abs(np.concatenate([to_map(values).ravel() for values in maps]))
    return float(np.percentile(sizes, _WITHIN)) or float(sizes.max()) or 1.0


def _scale_row(title: str, maps: Array, norm: Normalize) -> _Row:
    return _Row(_with_channels(title, maps), to_map(maps), SCALE_COLOURS, norm)


def _signed_row(title: str, maps: Array, norm: Normalize) -> _Row:
    return _Row(_with_channels(title, maps), to_map(maps), SIGNED_COLOURS, norm)


def _with_channels(title: str, maps: Array) -> str:
    several = maps.ndim == 4 and maps.shape[-1] > 1
    return f"{title}\n(channels' mean)" if several else title


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
    labels = [_wrapped(row.title) for row in rows]
    left = 0.2 + _LETTER * max(len(line) for label in labels for line in label.split("\n"))
    tall = _CELL * min(4.0, max(0.25, height / width))
    top = 0.1 if titles is None else 0.35
    size = (left + columns * (_CELL + _GAP) + _BAR, top + len(rows) * (tall + _GAP) + 0.1)
    figure = Figure(figsize=size)

    def place(row: int, start: float, wide: float) -> tuple[float, float, float, float]:
        bottom = size[1] - top - row * (tall + _GAP) - tall
        return (start / size[0], bottom / size[1], wide / size[0], tall / size[1])

    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        norm = row.norm or Normalize(*BYTES)
        for column, image in enumerate(row.images):
            axes = figure.add_axes(place(number, left + column * (_CELL + _GAP), _CELL))
            shown = axes.imshow(image, cmap=row.colours, norm=norm, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            if column == 0:
                axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9, parse_math=False)
            if number == 0 and titles is not None:
                axes.set_title(textwrap.shorten(titles[column], 16, placeholder="…"), fontsize=8, parse_math=False)
        if row.norm is not None:
            beside = figure.add_axes(place(number, left + columns * (_CELL + _GAP) + 0.05, 0.12))
            _draw_bar(figure, beside, shown, row)
    return figure


def _draw_bar(figure: Figure, axes: Axes, shown: AxesImage, row: _Row) -> None:
    """Draw a row's colour scale, with arrows and the largest value where pixels lie beyond it."""
    most = float(np.abs(row.images).max())
    signed = row.colours == SIGNED_COLOURS
    beyond = row.norm is not None and row.norm.vmax is not None and most > row.norm.vmax
    figure.colorbar(shown, cax=axes, extend=("both" if signed else "max") if beyond else "neither")
    largest = f"\nup to {'±' if signed else ''}{most:,.{0 if most >= 100 else 2}f}" if beyond else ""
    axes.set_ylabel(f"pixel values{largest}", fontsize=7)
    axes.tick_params(labelsize=7)


def _wrapped(title: str) -> str:
    return "\n".join(part for line in title.split("\n") for part in textwrap.wrap(line, _LINE) or [""])
