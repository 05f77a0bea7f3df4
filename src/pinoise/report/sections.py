"""The parts of a report's page, each from what was read of a run."""

from __future__ import annotations

from collections.abc import Sequence

from pinoise.report import interactive
from pinoise.report.charts import curves, panels, rank_features, sigma_bars, to_png
from pinoise.report.collect import NoisySamples
from pinoise.report.comparison import comparison_picture
from pinoise.report.describe import Table, evaluation_tables
from pinoise.report.page import Picture, Section
from pinoise.report.pictures import noise_grid
from pinoise.training.load import Run
from pinoise.training.progress import Record


def curves_section(history: Sequence[Record]) -> Section:
    """Return how training went."""
    shown = panels(history)
    if not shown:
        return Section("Training", ["metrics.csv holds no figures, so there are no curves."])
    last = {label: (epochs[-1], values[-1]) for panel in shown for label, (epochs, values) in panel.lines.items()}
    picture = Picture(
        name="curves",
        png=to_png(curves(history)),
        alt="Curves over epochs: "
        + "; ".join(f"{name}, {value:.4g} after epoch {epoch}" for name, (epoch, value) in last.items()),
        caption="Information is measured after about ten of the epochs.",
        chart=interactive.curves_html(shown),
    )
    rows = [[name, str(epoch), f"{value:.4g}"] for name, (epoch, value) in last.items()]
    return Section("Training", pictures=[picture], tables=[Table("How it ended", ["curve", "epoch", "value"], rows)])


def noise_section(run: Run, noisy: NoisySamples | None) -> Section:
    """Return what the noise looks like: pictures where samples are pictures, σ per feature elsewhere."""
    title = "The noise"
    if noisy is None:
        return Section(title, [f"This run has no learned noise: its views.noise is {run.settings.views.noise.name!r}."])
    sentences = []
    if run.noise is not None and run.noise.support is not None:
        sentences.append(
            f"This noise moves a sample along the data: ε is the way to one of its neighbours plus {noisy.symbol} ⊙ n."
        )
    if noisy.are_pictures:
        return Section(title, sentences, [_noise_picture(noisy)])
    picture, table = _sigma_picture(noisy)
    return Section(title, sentences, [picture], [table])


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


def _sigma_picture(noisy: NoisySamples) -> tuple[Picture, Table]:
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
        caption=f"{count:,} features, {which} shown. Bars are means over {len(noisy.sigma)} {noisy.part} samples, "
        "lines go from the 5th to the 95th percentile of samples.",
        chart=interactive.bars_html(ranking, symbol=symbol),
    )
    titles = [
        "feature",
        f"mean {symbol}, in standard deviations",
        "5th to 95th percentile",
        f"mean {symbol}, in the file's units",
    ]
    return picture, Table(f"{symbol} of features", titles, rows)


def comparison_section(names: Sequence[str], found: Sequence[NoisySamples | None], table: Table) -> Section:
    """Return runs side by side.

    Args:
        names: of the runs.
        found: the samples of each, None for a run without learned noise.
        table: their figures.
    """
    title = "Runs side by side"
    pairs = [(name, noisy) for name, noisy in zip(names, found, strict=True) if noisy is not None]
    if not pairs:
        return Section(title, ["None of these runs has learned noise."], tables=[table])
    return Section(title, pictures=[comparison_picture(pairs)], tables=[table])


def evaluation_section(run: Run) -> Section:
    """Return how good the embedding is, where that was measured."""
    tables = evaluation_tables(run)
    missing = [] if tables else ["This run has not been evaluated: 'pinoise evaluate' scores its embedding."]
    return Section("Evaluation", missing, tables=tables)
