"""From finished runs to a report: the page, and its pictures of noise as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pinoise.data.dataset import Dataset
from pinoise.data.source import source_files
from pinoise.errors import UserError
from pinoise.evaluation.knn import AGREEING
from pinoise.experiments.evaluated import Evaluation, read_evaluation, shown_source
from pinoise.files import REPORT_FILES, check_output, check_writable, is_run, read_json, real, written
from pinoise.information import HealthFlag
from pinoise.model import Model, contrastive_model
from pinoise.report.charts import draw_curves, panels
from pinoise.report.collect import NoisySamples, collect
from pinoise.report.maps import draw_maps
from pinoise.report.page import Picture, ReportTable, render
from pinoise.report.pictures import draw_comparison, draw_noise
from pinoise.report.tables import (
    compared_features,
    describe_noise,
    ends_table,
    evaluation_tables,
    features_table,
    runs_table,
)
from pinoise.training.config import dump_yaml
from pinoise.training.run import run_health


@dataclass(frozen=True)
class Report:
    """Where a report was written, and what its reader should know at once."""

    page: Path
    pictures: dict[str, Path]
    flags: list[HealthFlag]
    notes: list[str]


def write_report(
    runs: Sequence[Model],
    *,
    folder: Path | None = None,
    samples: int | None = None,
    seed: int = 0,
    evaluation: Callable[[Model], Evaluation | None] = read_evaluation,
    progress: bool = False,
    force: bool = False,
) -> Report:
    """Write ``report.html`` on the first of some runs, with a comparison of all.

    Noise on pictures is written as PNG files beside the page, too.

    Args:
        runs: one, or several that were trained on the same data.
        folder: where to write; the first run's own if None.
        samples: the number of pictures to show, or of vectors to average σ over.
        seed: of the draw of ε.
        evaluation: returns what is known about a run; by default, what its folder says.
        progress: whether a download of the data shows a bar.
        force: whether a report in another folder than the run's own may be replaced.
    """
    run = runs[0]
    folder = run.path if folder is None else folder
    _check_folder(folder, runs, force=force)
    _check_same_data(runs)
    data = run.own_data(progress=progress)
    named = dict(zip(distinct_names([other.path for other in runs]), runs, strict=True))
    noisy = {
        name: collect(other, samples=samples, seed=seed, data=data)
        for name, other in named.items()
        if other.noise is not None
    }
    known = list(map(evaluation, runs))
    health = health_of(run, data)
    noise = _shown_noise(next(iter(named)), noisy, several=len(runs) > 1)
    page = render(
        "report/templates/report.html.jinja",
        title=next(iter(named)),
        data=data,
        health=health,
        several=runs_table(named, known) if len(runs) > 1 else None,
        **_content_of(run, known[0]),
        **noise,
        maps=draw_maps(run, data),
    )
    pictures = [picture for picture in noise.values() if isinstance(picture, Picture)]
    write_all({folder / "report.html": page.encode(), **{folder / one.file: one.content for one in pictures}})
    return Report(
        page=folder / "report.html",
        pictures={picture.name: folder / picture.file for picture in pictures},
        flags=health.flags,
        notes=[f"{name} has no learned noise" for name in named if name not in noisy],
    )


def _content_of(run: Model, found: Evaluation | None) -> dict[str, Any]:
    """Return what the page says about a run from the files of its folder."""
    shown = panels(run.history)
    return {
        "run": run,
        "source": shown_source(run.settings.data.source),
        "notes": run.record.notes,
        "noise_in_words": describe_noise(run),
        "found": found,
        "scores": [] if found is None else evaluation_tables(found),
        "agreeing": AGREEING,
        "curves": [draw_curves(f"curves-{number}", panel) for number, panel in enumerate(shown)],
        "ends": ends_table(shown) if shown else None,
        "environment": environment_of(run),
        "config": dump_yaml(without_folders(run.settings.model_dump())),
    }


def _shown_noise(
    name: str, found: Mapping[str, NoisySamples], *, several: bool
) -> dict[str, Picture | ReportTable | None]:
    """Return the noise of the first run, ``name``, and of all runs together: pictures of pictures, tables of others."""
    own, first = found.get(name), next(iter(found.values()), None)
    alike = [(title, one) for title, one in found.items() if first and one.originals.shape == first.originals.shape]
    drawn = first is not None and first.are_pictures
    return {
        "noise": draw_noise("noise", own) if own and own.are_pictures else None,
        "features": features_table(own) if own and not own.are_pictures else None,
        "comparison": draw_comparison("comparison", alike) if several and drawn else None,
        "compared": compared_features(alike) if several and alike and not drawn else None,
    }


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write all files or none."""
    with ExitStack() as all_or_none:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            all_or_none.enter_context(written(path)).write_bytes(content)


class Health(NamedTuple):
    """What is wrong with a run; ``unknown`` is the reason if that cannot be found out."""

    flags: list[HealthFlag]
    unknown: str | None = None


def health_of(run: Model, data: Dataset) -> Health:
    """Return the flags that the run's training ended with, measured again from its last checkpoint."""
    if not run.history:
        return Health([], "metrics.csv is missing or empty.")
    rows = run.rows(data.train.x, where=run.settings.data.source, origin=data.train.origin)
    try:
        model = contrastive_model(run, rows)
    except UserError as error:
        return Health([], str(error).replace(str(run.path), run.path.name))
    training = run.settings.training
    processes = training.devices * training.nodes
    return Health(run_health(model, rows, run.settings, run.history, processes=processes))


def environment_of(run: Model) -> dict[str, Any]:
    """Return what the run ran on; empty if its folder does not say."""
    path = run.path / "environment.json"
    if not path.exists():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path} does not describe an environment: the run folder is damaged.")
    return found


def without_folders(value: Any) -> Any:
    """Return nested settings with the names of files, but without the folders that they are in.

    >>> without_folders({"data": {"source": "/home/me/a.csv", "rows": 3}})
    {'data': {'source': 'a.csv', 'rows': 3}}
    """
    if isinstance(value, Mapping):
        return {key: without_folders(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(inner) for inner in value]
    if isinstance(value, PurePath) or (isinstance(value, str) and PurePath(value).is_absolute()):
        return PurePath(value).name
    return value


def _check_folder(folder: Path, runs: Sequence[Model], *, force: bool) -> None:
    """Refuse, before any work, a folder that a report must not be written to.

    The first run's own folder is the usual place, and a report that is already there is replaced.
    """
    check_writable(folder, what="a report")
    sources = {path for run in runs for path in source_files(run.settings.data.source)}
    for source in filter(Path.is_dir, sources):  # pictures among images would become samples
        if real(folder).is_relative_to(real(source)):
            raise UserError(f"{folder} is in the folder of the data, {source}: name another folder with --out.")
    if not (folder.is_dir() and folder.samefile(runs[0].path)):
        if is_run(folder):
            raise UserError(f"{folder} holds another run than {runs[0].path}: name another folder with --out.")
        for name in REPORT_FILES:
            check_output(folder / name, force=force)


def _check_same_data(runs: Sequence[Model]) -> None:
    """Refuse to compare runs whose samples are not the same."""
    first = runs[0]
    for other in runs[1:]:
        if other.record.fingerprint != first.record.fingerprint:
            raise UserError(
                f"{_difference(first, other)}: only runs trained on the same rows can be compared; report them one by "
                "one."
            )


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


def _difference(first: Model, other: Model) -> str:
    """Return what differs between the data of two runs: number of rows, their size, source, or only the values."""
    said, also = ({"data": run.record.size, "source": run.settings.data.source} for run in (first, other))
    apart = [key for key in said if said[key] != also[key]]
    if not apart:
        return f"{said['source']} had other values when {other.path} was trained than when {first.path} was"
    ours, theirs = (" from ".join(words[key] for key in apart) for words in (said, also))
    return f"{first.path} was trained on {ours} and {other.path} on {theirs}"
