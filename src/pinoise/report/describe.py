"""What a report says about a run in words and tables, from the files of its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pinoise.data.dataset import Dataset
from pinoise.data.messages import counted
from pinoise.errors import UserError
from pinoise.evaluation.logistic import LABELS_PER_CLASS
from pinoise.files import read_json
from pinoise.information import HealthFlag
from pinoise.training.load import Run, load_model
from pinoise.training.progress import Record
from pinoise.training.run import run_health

_SCORES = {
    "knn": "kNN",
    "sr": "softmax regression",
    "lr": "logistic regression",
    "few": f"{LABELS_PER_CLASS} labels per class",
}
_INFORMATION = {
    "task_entropy": "H(T)",
    "conditional_entropy": "H(T|E)",
    "exact": "exact information",
    "plug_in": "plug-in information",
}


class Table(NamedTuple):
    """A table: the first column is text, the others are figures."""

    caption: str
    titles: list[str]
    rows: list[list[str]]
    sortable: bool = False  # by a click on a title


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
        ("Data", f"{settings.data.source}: {len(data.train):,} training rows of {shape}{held_out}"),
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
        return Health([], f"{run.path / 'metrics.csv'} is missing or empty.")
    rows = run.rows(data.train.x, where=run.settings.data.source, origin=data.train.origin)
    try:
        model = load_model(run, rows)
    except UserError as error:
        return Health([], str(error))
    training = run.settings.training
    processes = training.devices * training.nodes
    return Health(run_health(model, rows, run.settings, list(history), processes=processes))


def outdated(run: Run) -> str | None:
    """Return the sentence on scores that are of another state of the run than its weights now, if they are."""
    path = run.path / "evaluation.json"
    if not path.exists() or run.is_current(result := read_json(path)):
        return None
    state = result.get("state") if isinstance(result, dict) else None
    epoch = state.get("epoch") if isinstance(state, dict) else None
    then = "an earlier state of the run" if epoch is None else f"the run after epoch {epoch}"
    return f"These scores are of {then}, which is now at epoch {run.epoch}: 'pinoise evaluate' scores it again."


def evaluation_tables(run: Run) -> list[Table]:
    """Return what ``pinoise evaluate`` found; empty if it was not run."""
    path = run.path / "evaluation.json"
    if not path.exists():
        return []
    result = read_json(path)
    try:
        tables = [_scores_table(result["data"], result["scores"], result.get("rows"))]
        if "information" in result:
            tables.append(_information_table(result["information"]))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise UserError(
            f"{path} is not what 'pinoise evaluate' writes: evaluate the run again, or delete it."
        ) from None
    return tables


def comparison_table(runs: Mapping[str, Run], histories: Sequence[Sequence[Record]]) -> Table:
    """Return runs side by side: their noise, how they ended and their scores, where they have been evaluated."""
    rows = []
    for (name, run), history in zip(runs.items(), histories, strict=True):
        tables = evaluation_tables(run) if outdated(run) is None else []
        scores = next((row[1:] for row in tables[0].rows if row[0] == "learned"), []) if tables else []
        last = history[-1] if history else None
        loss = "–" if last is None else f"{last.loss:.4g}"
        sigma = math.nan if last is None else last.metrics.get("sigma_median", math.nan)
        size = f"{sigma:.3g}" if math.isfinite(sigma) else "–"
        rows.append([name, describe_noise(run), loss, size, *(scores or ["–"] * len(_SCORES))])
    titles = ["run", "noise", "loss", "median σ", *_SCORES.values()]
    return Table(
        "Accuracies are those of the learned embedding, in percent; – where this state was not scored.",
        titles,
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


def _scores_table(data: str, scores: Mapping[str, Mapping[str, float]], most: int | None) -> Table:
    drawn = "" if most is None else f", at most {most} rows of each part"
    rows = []
    for name, found in scores.items():
        cells = [f"{100 * float(found[key]):.1f}" for key in _SCORES]
        cells[-1] += f" ± {100 * float(found['few_std']):.1f}"
        rows.append([name, *cells])
    return Table(f"Accuracy on {data}{drawn}, in percent", ["embedding", *_SCORES.values()], rows)


def _information_table(information: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = []
    for name, found in information.items():
        pairs = [found[key] for key in _INFORMATION]
        rows.append([name, *(f"{float(pair['value']):.3f} ± {float(pair['error']):.3f}" for pair in pairs)])
    return Table("What views tell about the task, in nats", ["views", *_INFORMATION.values()], rows)
