"""The parts of a report's page, each from what was read of a run."""

from __future__ import annotations

from collections.abc import Sequence

from pinoise.data.dataset import Dataset
from pinoise.evaluation.knn import AGREEING
from pinoise.experiments.evaluated import Evaluation
from pinoise.report import interactive
from pinoise.report.charts import (
    HIGH,
    LOW,
    Panel,
    colours_of,
    compare_bars,
    draw_panels,
    feature_names,
    panels,
    rank_features,
    sigma_bars,
    to_png,
)
from pinoise.report.collect import NoisySamples
from pinoise.report.describe import Health, ReportTable, evaluation_tables, summarise
from pinoise.report.page import Chart, Key, PageSection, Picture
from pinoise.report.pictures import MapRow, compare_grid, noise_grid
from pinoise.training.callbacks import Record
from pinoise.training.folder import read_record
from pinoise.training.load import Run


def scores_section(found: Evaluation | None) -> PageSection:
    """Return how good the embedding is, where that was measured."""
    title = "Scores"
    if found is None:
        return PageSection(title, ["There are none, as the run has not been evaluated."])
    sentences = [] if found.scores else ["There are none without labels."]
    if found.agreement:
        shares = {name: f"{100 * share:.0f} %" for name, share in found.agreement.items()}
        sentences.append(
            f"Neighbours: of a row's {AGREEING} nearest rows among raw features, the learned embedding keeps "
            f"{shares['learned']}, an untrained one {shares['untrained']}, and chance {shares['chance']}."
        )
    if found.scores:
        sentences.insert(0, _READING_R2 if found.measured else _READING)
    return PageSection(title, sentences, tables=evaluation_tables(found))


_READING = (
    "Raw features are standardised; an untrained embedding has random weights. kNN looks at the nearest training rows; "
    "softmax regression is the paper's short fit, logistic regression is fitted to the end."
)
_READING_R2 = (
    "R² is the share of the target's variance that is predicted: 100 is perfect, 0 is no better than the mean. Raw "
    "features are standardised; an untrained embedding has random weights."
)


def training_section(history: Sequence[Record], health: Health) -> PageSection:
    """Return how training went: its health, then its curves."""
    sentences = ["Flags speak of training alone, not of how good the embedding is."]
    shown = panels(history)
    if not shown:
        sentences.append("metrics.csv holds no figures, so there are no curves.")
        return PageSection("Training", sentences, health=health)
    last = {label: (epochs[-1], values[-1]) for panel in shown for label, (epochs, values) in panel.lines.items()}
    alt = "; ".join(f"{name}, {value:.4g} after epoch {epoch}" for name, (epoch, value) in last.items())
    picture = curves_picture(
        "curves",
        shown,
        alt=f"Curves over epochs: {alt}",
        caption="Information is measured after at most about ten of the epochs.",
    )
    rows = [[name, str(epoch), f"{value:.4g}"] for name, (epoch, value) in last.items()]
    table = ReportTable("How it ended", ["curve", "epoch", "value"], rows)
    return PageSection("Training", sentences, pictures=[picture], tables=[table], health=health)


def curves_picture(name: str, shown: Sequence[Panel], *, alt: str, caption: str, x: str = "epoch") -> Picture:
    """Return panels of curves as a chart for each, with one key to the colours of all."""
    colours = colours_of(shown)
    charts = [
        Chart(panel.title, interactive.curves_html(panel, colours=colours, name=f"{name}-{number}", x=x))
        for number, panel in enumerate(shown)
    ]
    key = [Key(colour, label) for label, colour in colours.items()]
    return Picture("curves", to_png(draw_panels(shown, x=x)), alt, caption, charts, key)


def data_section(run: Run, data: Dataset, history: Sequence[Record]) -> PageSection:
    """Return what the run was trained on and how, and what was done to the data."""
    notes = [note[0].upper() + note[1:] + "." for note in read_record(run.path / "data.json").notes]
    return PageSection("Data and settings", facts=summarise(run, data, history), notes=notes)


def noise_section(run: Run, noisy: NoisySamples | None) -> PageSection:
    """Return what the noise looks like: pictures where samples are pictures, σ per feature elsewhere."""
    title = "The noise"
    if noisy is None:
        return PageSection(
            title, [f"This run has no learned noise: its views.noise is {run.settings.views.noise.name!r}."]
        )
    sentences = []
    if run.noise is not None and run.noise.support is not None:
        sentences.append(
            f"This noise moves a sample along the data: ε is the way to one of its neighbours plus {noisy.symbol} ⊙ n."
        )
    if noisy.are_pictures:
        return PageSection(title, sentences, [_noise_picture(noisy)])
    picture, table = _sigma_picture(noisy)
    return PageSection(title, sentences, [picture], [table])


def _noise_picture(noisy: NoisySamples) -> Picture:
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
    return Picture(
        name="noise",
        png=to_png(figure),
        alt=f"{len(noisy.originals)} {noisy.part} samples in columns; in rows the originals{mean}, {noisy.symbol} of "
        f"every pixel (mean {noisy.sigma.mean():.3g}, largest {noisy.sigma.max():.3g}), one draw of ε, and x + ε.",
        caption=f"{noisy.symbol} and ε are in pixel values; a colour scale holds for its whole row.",
    )


def _sigma_picture(noisy: NoisySamples) -> tuple[Picture, ReportTable]:
    symbol = noisy.symbol
    ranking = rank_features(noisy.relative_sigma, noisy.feature_names)
    count = noisy.relative_sigma[0].size
    which = f"the {len(ranking.names)} with the most noise" if count > len(ranking.names) else "all"
    in_file = noisy.sigma.reshape(len(noisy.sigma), -1).mean(axis=0)
    rows = [
        [name, f"{mean:.4g}", f"{low:.4g} to {high:.4g}", f"{in_file[column]:.4g}"]
        for name, column, mean, low, high in zip(
            ranking.names, ranking.columns, ranking.mean, ranking.low, ranking.high, strict=True
        )
    ]
    picture = Picture(
        name="sigma",
        png=to_png(sigma_bars(ranking, symbol=symbol)),
        alt=f"Bar chart of {symbol} per feature, from {ranking.names[0]} with {ranking.mean[0]:.3g} down to "
        f"{ranking.names[-1]} with {ranking.mean[-1]:.3g}; the table below has the figures.",
        caption=f"{count:,} features, {which} shown. Bars are means over {len(noisy.sigma)} {noisy.part} samples; "
        f"lines go from the {LOW:.0f}th to the {HIGH:.0f}th percentile of samples.",
        charts=[Chart(f"{symbol} of features", interactive.bars_html(ranking, symbol=symbol))],
    )
    titles = [
        "feature",
        f"mean {symbol}, in standard deviations",
        f"{LOW:.0f}th to {HIGH:.0f}th percentile",
        f"mean {symbol}, in the file's units",
    ]
    return picture, ReportTable(f"{symbol} of features", titles, rows)


def comparison_section(names: Sequence[str], found: Sequence[NoisySamples | None], table: ReportTable) -> PageSection:
    """Return runs side by side.

    Args:
        names: of the runs.
        found: the samples of each, None for a run without learned noise.
        table: their figures.
    """
    title = "Runs side by side"
    pairs = [(name, noisy) for name, noisy in zip(names, found, strict=True) if noisy is not None]
    if not pairs:
        return PageSection(title, ["None of these runs has learned noise."], tables=[table])
    return PageSection(title, pictures=[_comparison_picture(pairs)], tables=[table])


def _comparison_picture(runs: Sequence[tuple[str, NoisySamples]]) -> Picture:
    """Draw the noise of runs on the same samples.

    Args:
        runs: the name of each and its samples; those that are pictures are drawn as the first are.
    """
    first = runs[0][1]
    alike = [(name, noisy) for name, noisy in runs if noisy.originals.shape == first.originals.shape]
    if first.are_pictures:
        rows = [row for name, noisy in alike for row in _map_rows(name, noisy)]
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


def _map_rows(name: str, noisy: NoisySamples) -> list[MapRow]:
    """Return the rows of Figure 4 that a run gives: learned μ and σ, w of uniform noise, or σ with μ = 0."""
    if noisy.learns_mean:
        return [
            MapRow(f"{name}:\nlearned μ", noisy.mu, "signed"),
            MapRow(f"{name}:\n{noisy.symbol}, μ learned", noisy.sigma, "scale"),
        ]
    what = "w, uniform" if noisy.symbol == "w" else f"{noisy.symbol}, μ = 0"
    return [MapRow(f"{name}:\n{what}", noisy.sigma, "scale")]
