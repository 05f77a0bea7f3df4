"""Several runs side by side: the rows of Figure 3 for pictures, dots per feature for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pinoise.report.charts import compare_bars, feature_names, to_png
from pinoise.report.collect import NoisySamples
from pinoise.report.page import Picture
from pinoise.report.pictures import MapRow, compare_grid


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of run folders, with as many folders above them as it takes to tell them apart.

    >>> distinct_names([Path("a/run"), Path("b/run")]), distinct_names([Path("a/run"), Path("a/other")])
    (['a/run', 'b/run'], ['run', 'other'])
    """
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(set(parts)):
            break
    return [name if names.index(name) == number else f"{name} ({number + 1})" for number, name in enumerate(names)]


def map_rows(name: str, noisy: NoisySamples) -> list[MapRow]:
    """Return the rows of Figure 3 that a run gives: learned μ and σ, w of uniform noise, or σ with μ = 0."""
    if noisy.learns_mean:
        return [
            MapRow(f"{name}:\nlearned μ", noisy.mu, "signed"),
            MapRow(f"{name}:\n{noisy.symbol}, μ learned", noisy.sigma, "scale"),
        ]
    what = "w, uniform" if noisy.symbol == "w" else f"{noisy.symbol}, μ = 0"
    return [MapRow(f"{name}:\n{what}", noisy.sigma, "scale")]


def comparison_picture(runs: Sequence[tuple[str, NoisySamples]]) -> Picture:
    """Draw the noise of runs on the same samples.

    Args:
        runs: the name of each and its samples; those that are pictures are drawn as the first are.
    """
    first = runs[0][1]
    alike = [(name, noisy) for name, noisy in runs if noisy.originals.shape == first.originals.shape]
    if first.are_pictures:
        rows = [row for name, noisy in alike for row in map_rows(name, noisy)]
        figure = compare_grid(first.originals, rows, titles=first.labels, brightness=first.brightness)
        titles = "; ".join(row.title.replace("\n", " ") for row in rows)
        alt = f"The same samples in columns; in rows the originals, then {titles}."
        caption = "All maps of σ and w share one colour scale, all maps of μ another; values are pixel values."
        return Picture("comparison", to_png(figure), alt, caption)
    names = first.feature_names or feature_names(first.relative_sigma.shape[1:])
    series = [(f"{name} ({noisy.symbol})", noisy.relative_sigma) for name, noisy in alike]
    figure = compare_bars(names, series, symbol=first.symbol)
    means = "; ".join(f"{name} {sigma.mean():.3g}" for name, sigma in series)
    alt = f"A dot for every feature and run; means over all features: {means}."
    caption = "Means over samples; the features that are largest in any of the runs."
    return Picture("comparison", to_png(figure), alt, caption)
