"""The tables of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pinoise.evaluation.logistic import LABELS_PER_CLASS
from pinoise.evaluation.ridge import KNOWN_VALUES
from pinoise.experiments.evaluated import INFORMATION, Evaluation, Found, StoredInformation
from pinoise.model import Model
from pinoise.report.charts import HIGH, LOW, Panel, feature_names, rank_features
from pinoise.report.collect import NoisySamples
from pinoise.report.page import ReportTable

_SCORES = {
    "knn": "kNN",
    "sr": "softmax regression",
    "lr": "logistic regression",
    "few": f"{LABELS_PER_CLASS} labels per class",
}
_R2 = {"knn": "kNN", "lr": "ridge regression", "few": f"{KNOWN_VALUES} known values"}


def describe_noise(run: Model) -> str:
    """Return in a few words what the noise of a run is."""
    if run.noise is None:
        return f"none learned (views.noise is {run.settings.views.noise.name})"
    mean = "learned μ" if run.noise.outputs == 2 else "μ = 0"
    return f"{run.noise.distribution}, {mean}, objective {run.settings.objective.name}"


def evaluation_tables(found: Evaluation) -> list[ReportTable]:
    """Return what ``pinoise evaluate`` found."""
    tables = [_scores_table(found)] if found.scores else []
    return [*tables, _information_table(found.information)] if found.information else tables


def ends_table(panels: Sequence[Panel]) -> ReportTable:
    """Return the last value of every curve."""
    ends = [(label, epochs[-1], values[-1]) for panel in panels for label, (epochs, values) in panel.lines.items()]
    rows = [[label, str(epoch), f"{value:.4g}"] for label, epoch, value in ends]
    return ReportTable("How it ended", ["curve", "epoch", "value"], rows)


def features_table(noisy: NoisySamples) -> ReportTable:
    """Return the features with the most noise, in standard deviations and in the units of the file."""
    symbol = noisy.symbol
    ranking = rank_features(noisy.relative_sigma, noisy.feature_names)
    in_file = noisy.sigma.reshape(len(noisy.sigma), -1).mean(axis=0)
    columns = zip(ranking.names, ranking.columns, ranking.mean, ranking.low, ranking.high, strict=True)
    rows = [
        [name, f"{mean:.3g}", f"{low:.3g} to {high:.3g}", f"{in_file[column]:.3g}"]
        for name, column, mean, low, high in columns
    ]
    count = noisy.relative_sigma[0].size
    which = f"the {len(rows)} with the most noise" if count > len(rows) else "all"
    caption = f"{symbol} of {count:,} features, {which} shown; means over {len(noisy.sigma)} {noisy.part} samples"
    spread = f"{LOW}th to {HIGH}th percentile"
    return ReportTable(caption, ["feature", f"mean {symbol}, in std", spread, "in the file's units"], rows, bars=(1,))


def runs_table(runs: Mapping[str, Model], known: Sequence[Evaluation | None]) -> ReportTable:
    """Return runs side by side below raw features: their noise, how they ended and their scores, where there are any.

    Args:
        runs: by name, all on the same data.
        known: what is known about each as it is now.
    """
    scored = [found if found is not None and found.scores else None for found in known]
    first = next((found for found in scored if found is not None), None)
    titles = _R2 if first is not None and first.measured else _SCORES
    rows = [] if first is None else [["raw features", "–", "–", "–", *_cells(first.scores["raw"], titles)]]
    for (name, run), found in zip(runs.items(), scored, strict=True):
        last = run.history[-1] if run.history else None
        loss = "–" if last is None else f"{last.loss:.4g}"
        sigma = math.nan if last is None else last.metrics.get("sigma_median", math.nan)
        size = f"{sigma:.3g}" if math.isfinite(sigma) else "–"
        scores = ["–"] * len(titles) if found is None else _cells(found.scores["learned"], titles)
        rows.append([name, describe_noise(run), loss, size, *scores])
    what = "R²" if titles is _R2 else "Accuracies"
    return ReportTable(
        f"{what} of the embeddings, in percent; – where this state was not scored.",
        ["run", "noise", "loss", "median σ", *titles.values()],
        rows,
    )


def compared_features(runs: Sequence[tuple[str, NoisySamples]]) -> ReportTable:
    """Return σ of the features for which it is largest in any of the runs; one column for each run."""
    series = [(f"{name} ({noisy.symbol})", noisy.relative_sigma) for name, noisy in runs]
    means = np.stack([sigma.reshape(len(sigma), -1).mean(axis=0) for _, sigma in series])  # (runs, d)
    names = runs[0][1].feature_names or feature_names(runs[0][1].relative_sigma.shape[1:])
    ranking = rank_features(means.max(axis=0, keepdims=True), names)
    rows = [
        [name, *(f"{value:.4g}" for value in means[:, column])]
        for name, column in zip(ranking.names, ranking.columns, strict=True)
    ]
    caption = "Size of the noise in standard deviations, where it is largest in any of the runs; means over samples"
    return ReportTable(
        caption, ["feature", *(title for title, _ in series)], rows, bars=tuple(range(1, 1 + len(series)))
    )


def _scores_table(found: Evaluation) -> ReportTable:
    drawn = f", {found.rows} rows drawn of a part" if found.rows in found.sizes else ""
    titles = _R2 if found.measured else _SCORES
    what = "R²" if found.measured else "Accuracy"
    rows = [[name, *_cells(scores, titles)] for name, scores in found.scores.items()]
    raw, learned = found.scores["raw"], found.scores["learned"]
    gaps = [f"{100 * (getattr(learned, key) - getattr(raw, key)):+.1f}".replace("-", "−") for key in titles]
    caption = f"{what} on {found.sizes[1]:,} test rows of {found.data}{drawn}, in percent; ± over draws of labels"
    return ReportTable(caption, ["embedding", *titles.values()], [*rows, ["learned − raw", *gaps]], total=True)


def _cells(scores: Found, titles: Mapping[str, str]) -> list[str]:
    cells = [f"{100 * getattr(scores, key):.1f}" for key in titles]
    cells[-1] += f" ± {100 * scores.few_std:.1f}"
    return cells


def _information_table(information: Mapping[str, StoredInformation]) -> ReportTable:
    rows = [[name, *found.cells] for name, found in information.items()]
    return ReportTable("What views tell about the task, in nats", ["views", *INFORMATION.values()], rows)
