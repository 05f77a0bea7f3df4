"""What a report says about a run in words and tables, from the files of its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pinoise.data.dataset import Dataset
from pinoise.data.messages import counted
from pinoise.errors import UserError
from pinoise.evaluation.logistic import LABELS_PER_CLASS
from pinoise.evaluation.ridge import KNOWN_VALUES
from pinoise.experiments.evaluated import Evaluation, Found, Informative, shown_source
from pinoise.files import read_json
from pinoise.information import HealthFlag
from pinoise.training.callbacks import Record
from pinoise.training.load import Run, load_model
from pinoise.training.run import run_health

_SCORES = {
    "knn": "kNN",
    "sr": "softmax regression",
    "lr": "logistic regression",
    "few": f"{LABELS_PER_CLASS} labels per class",
}
_R2 = {"knn": "kNN", "lr": "ridge regression", "few": f"{KNOWN_VALUES} known values"}
_INFORMATION = {
    "task_entropy": "H(T)",
    "conditional_entropy": "H(T|E)",
    "exact": "exact information",
    "plug_in": "plug-in information",
}


class ReportTable(NamedTuple):
    """A table: the first column is text, the others are figures."""

    caption: str
    titles: list[str]
    rows: list[list[str]]
    sortable: bool = False  # by a click on a title
    total: bool = False  # whether the last row sums up the others


class Health(NamedTuple):
    """What is wrong with a run; ``unknown`` is the reason if that cannot be found out."""

    flags: list[HealthFlag]
    unknown: str | None = None


def describe_noise(run: Run) -> str:
    """Return in a few words what the noise of a run is."""
    if run.noise is None:
        return f"none learned (views.noise is {run.settings.views.noise.name})"
    mean = "learned μ" if run.noise.outputs == 2 else "μ = 0"
    return f"{run.noise.distribution}, {mean}, objective {run.settings.objective.name}"


def summarise(run: Run, data: Dataset, history: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the settings of a run that a reader asks for first, and how it ended."""
    settings = run.settings
    shape = " × ".join(map(str, data.shape))
    held_out = "" if data.test is None else f", {len(data.test):,} held out"
    lines = [
        ("Data", f"{shown_source(settings.data.source)}: {len(data.train):,} training rows of {shape}{held_out}"),
        ("Method", f"{settings.method.name}, encoder {settings.encoder.name}"),
        ("Noise", describe_noise(run)),
        ("Augmentations", ", ".join(item.name for item in settings.views.augmentations) or "none"),
        ("Training", f"batches of {settings.training.batch_size}, seed {settings.training.seed}"),
    ]
    if history:
        last = history[-1]
        lines.append(
            ("Ended", f"after {counted(last.epoch, 'epoch')} and {last.seconds:,.0f} s with a loss of {last.loss:.4g}")
        )
    return lines


def health_of(run: Run, data: Dataset, history: Sequence[Record]) -> Health:
    """Return the flags that the run's training ended with, measured again from its last checkpoint."""
    if not history:
        return Health([], "metrics.csv is missing or empty.")
    rows = run.rows(data.train.x, where=run.settings.data.source, origin=data.train.origin)
    try:
        model = load_model(run, rows)
    except UserError as error:
        return Health([], str(error).replace(str(run.path), run.path.name))
    training = run.settings.training
    processes = training.devices * training.nodes
    return Health(run_health(model, rows, run.settings, list(history), processes=processes))


def evaluation_tables(found: Evaluation) -> list[ReportTable]:
    """Return what ``pinoise evaluate`` found."""
    tables = [_scores_table(found)] if found.scores else []
    return [*tables, _information_table(found.information)] if found.information else tables


def comparison_table(
    runs: Mapping[str, Run], histories: Sequence[Sequence[Record]], known: Sequence[Evaluation | None]
) -> ReportTable:
    """Return runs side by side below raw features: their noise, how they ended and their scores, where there are any.

    Args:
        runs: by name, all on the same data.
        histories: of each.
        known: what is known about each.
    """
    scored = [
        found if found is not None and found.scores and run.is_current(found.model_dump()) else None
        for run, found in zip(runs.values(), known, strict=True)
    ]
    first = next((found for found in scored if found is not None), None)
    titles = _R2 if first is not None and first.measured else _SCORES
    rows = [] if first is None else [["raw features", "–", "–", "–", *_cells(first.scores["raw"], titles)]]
    for (name, run), history, found in zip(runs.items(), histories, scored, strict=True):
        last = history[-1] if history else None
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


def environment_of(run: Run) -> list[tuple[str, str]]:
    """Return what the run ran on; empty if its folder does not say."""
    path = run.path / "environment.json"
    if not path.exists():
        return []
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path} does not describe an environment: the run folder is damaged.")
    return [(name.replace("_", " "), _in_words(value)) for name, value in found.items()]


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


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


def _information_table(information: Mapping[str, Informative]) -> ReportTable:
    rows = []
    for name, found in information.items():
        pairs = [getattr(found, key) for key in _INFORMATION]
        rows.append([name, *(f"{pair.value:.3f} ± {pair.error:.3f}" for pair in pairs)])
    return ReportTable("What views tell about the task, in nats", ["views", *_INFORMATION.values()], rows)
