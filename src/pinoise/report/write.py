"""From finished runs to a report: the page and its pictures as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pinoise.data.source import source_files
from pinoise.errors import UserError
from pinoise.experiments.evaluated import Evaluation, read_evaluation
from pinoise.files import REPORT_FILES, check_output, check_writable, is_run, real, written
from pinoise.information import HealthFlag
from pinoise.report import interactive
from pinoise.report.answer import answer
from pinoise.report.collect import collect
from pinoise.report.command import shown_config, train_command
from pinoise.report.describe import comparison_table, environment_of, health_of
from pinoise.report.maps import maps_section
from pinoise.report.page import render_page
from pinoise.report.sections import comparison_section, data_section, noise_section, scores_section, training_section
from pinoise.training.folder import read_record
from pinoise.training.load import Run


@dataclass(frozen=True)
class Report:
    """Where a report was written, and what its reader should know at once."""

    page: Path
    pictures: dict[str, Path]
    flags: list[HealthFlag]
    notes: list[str]


def write_report(
    runs: Sequence[Run],
    *,
    folder: Path | None = None,
    samples: int | None = None,
    seed: int = 0,
    evaluations: Sequence[Evaluation | None] = (),
    flags: Mapping[str, str] | None = None,
    progress: bool = False,
    force: bool = False,
) -> Report:
    """Write ``report.html`` on the first of some runs, with a comparison of all, and its pictures as PNG files.

    Args:
        runs: one, or several that were trained on the same data.
        folder: where to write; the first run's own if None.
        samples: the number of pictures to show, or of vectors to average σ over.
        seed: of the draw of ε.
        evaluations: what is known about each run; by default, and for None, what its folder says.
        flags: of the command, by the setting that each stands for, to write the command that trains the run again.
        progress: whether a download of the data shows a bar.
        force: whether a report in another folder than the run's own may be replaced.
    """
    run = runs[0]
    sources = {path for other in runs for path in source_files(other.settings.data.source)}
    folder = check_report_folder(folder, [other.path for other in runs], sources, force=force)
    check_same_data(runs)
    data = run.own_data(progress=progress)
    histories = [other.history for other in runs]
    health = health_of(run, data, histories[0])
    given = [*evaluations, *[None] * (len(runs) - len(evaluations))]
    known = [read_evaluation(other) if one is None else one for other, one in zip(runs, given, strict=True)]
    found = [None if other.noise is None else collect(other, samples=samples, seed=seed, data=data) for other in runs]
    names = distinct_names([other.path for other in runs])

    notes = [f"{name} has no learned noise" for name, noisy in zip(names, found, strict=True) if noisy is None]
    sections = [
        scores_section(known[0]),
        maps_section(run, data),
        training_section(histories[0], health),
        noise_section(run, found[0]),
    ]
    if len(runs) > 1:
        table = comparison_table(dict(zip(names, runs, strict=True)), histories, known)
        sections.append(comparison_section(names, found, table))
    sections.append(data_section(run, data, histories[0]))
    page = render_page(
        names[0],
        answer=answer(run, known[0], health.flags),
        sections=sections,
        command=train_command(run.settings, run.path.resolve().name, flags),
        environment=environment_of(run),
        config=shown_config(run.settings.model_dump()),
        script=interactive.script(),
    )
    pictures = {picture.name: picture.png for section in sections for picture in section.pictures}
    _write(folder, {"report.html": page.encode(), **{f"{name}.png": png for name, png in pictures.items()}})
    paths = {name: folder / f"{name}.png" for name in pictures}
    return Report(page=folder / "report.html", pictures=paths, flags=health.flags, notes=notes)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files or none."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as all_or_none:
        for name, content in files.items():
            all_or_none.enter_context(written(folder / name)).write_bytes(content)


def check_report_folder(
    folder: Path | None, runs: Sequence[Path], sources: Iterable[Path] = (), *, force: bool = False
) -> Path:
    """Return the folder for a report, or raise a ``UserError``, before any work, if it must not be written there.

    The first run's own folder is the usual place, and a report that is already there is replaced.

    Args:
        folder: the folder for the report; the first run's own if None.
        runs: the folders of the runs.
        sources: the files and folders of their data.
        force: whether a report in another folder may be replaced.
    """
    folder = runs[0] if folder is None else folder
    check_writable(folder, what="a report")
    for source in filter(Path.is_dir, sources):  # pictures among images would become samples
        if real(folder).is_relative_to(real(source)):
            raise UserError(f"{folder} is in the folder of the data, {source}: name another folder with --out.")
    if not (folder.is_dir() and runs[0].is_dir() and folder.samefile(runs[0])):
        if is_run(folder):
            raise UserError(f"{folder} holds another run than {runs[0]}: name another folder with --out.")
        for name in REPORT_FILES:
            check_output(folder / name, force=force)
    return folder


def check_same_data(runs: Sequence[Run]) -> None:
    """Refuse to compare runs whose samples are not the same."""
    first = runs[0]
    for other in runs[1:]:
        if other.fingerprint != first.fingerprint:
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


def _difference(first: Run, other: Run) -> str:
    """Return what differs between the data of two runs: number of rows, their size, source, or only the values."""
    said, also = _described(first), _described(other)
    apart = [key for key in said if said[key] != also[key]]
    if not apart:
        return f"{said['source']} had other values when {other.path} was trained than when {first.path} was"
    ours, theirs = (" from ".join(words[key] for key in apart) for words in (said, also))
    return f"{first.path} was trained on {ours} and {other.path} on {theirs}"


def _described(run: Run) -> dict[str, str]:
    return {"data": read_record(run.path / "data.json").size, "source": run.settings.data.source}
