"""Reproductions of the paper's tables and figures as a page, and as files of results with their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path

from pinoise.files import to_json, written
from pinoise.paper.reproduce.layout import tables
from pinoise.paper.reproduce.outcome import LEVEL, Reproduction
from pinoise.paper.reproduce.paper import COLUMNS
from pinoise.paper.reproduce.run import Running
from pinoise.paper.reproduce.verdict import verdict
from pinoise.report import interactive
from pinoise.report.charts import Panel
from pinoise.report.collect import collect
from pinoise.report.describe import ReportTable
from pinoise.report.page import PageSection, Picture, render
from pinoise.report.sections import comparison_section, curves_picture, noise_section


def write_reproductions(finished: Sequence[Running], *, page: Path | None, folder: Path | None) -> None:
    """Write a page about some items, and to a folder a file of results for each, with its pictures.

    Args:
        finished: what was run.
        page: the HTML file; none if None.
        folder: for ``T2.json``, ``F1-1.png`` and so on; none if None.
    """
    pictures = [pictures_of(running) for running in finished]
    files: dict[Path, bytes] = {}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for running, drawn in zip(finished, pictures, strict=True):
            found = running.found
            files[folder / f"{found.item.name}.json"] = f"{to_json(found.as_dict())}\n".encode()
            files |= {folder / f"{picture.name}.png": picture.png for picture in drawn}
    if page is not None:
        found_pictures = zip([running.found for running in finished], pictures, strict=True)
        page.parent.mkdir(parents=True, exist_ok=True)
        files[page] = render_reproductions(list(found_pictures)).encode()
    with ExitStack() as all_or_none:
        for path, content in files.items():
            all_or_none.enter_context(written(path)).write_bytes(content)


def render_reproductions(items: Sequence[tuple[Reproduction, Sequence[Picture]]]) -> str:
    """Return the page about some items with their pictures as HTML."""
    environment = items[0][0].environment
    summary = [("Items", ", ".join(found.item.name for found, _ in items))]
    if environment:
        machine = f"{environment['cpu_count']} cores ({environment['cpu']}), {environment['memory_gb']} GB"
        summary += [("Machine", machine), ("Date", str(environment["date"]))]
    return render(
        "reproduction.html.jinja",
        title="The paper's figures beside ours",
        summary=summary,
        sections=[section_of(found, drawn) for found, drawn in items],
        script=interactive.script(),
        verdicts=[(f"{found.item.name}, {found.item.title}", verdict(found)) for found, _ in items],
    )


def section_of(found: Reproduction, pictures: Sequence[Picture] = ()) -> PageSection:
    """Return an item as a section of a page: what it is, how it was run, its pictures and its tables."""
    item = found.item
    seeds = "1 seed" if len(found.seeds) == 1 else f"{len(found.seeds)} seeds"
    sentences = [f"In the paper: {item.label}. Scale {found.scale}, {seeds}. Command: {found.command}"]
    if item.claim is not None:
        sentences.append(f"The paper's claim: {item.claim}")
    sentences.append(f"Here: {verdict(found)}")
    if found.notes:
        sentences.append(f"Data: {'; '.join(found.notes)}.")
    sentences += [f"Odd in the paper: {oddity}" for oddity in item.oddities]
    brackets = f"; in brackets the {LEVEL:.0%} interval of the mean" if len(found.seeds) > 1 else ""
    shown = [
        ReportTable(f"{table.caption}{brackets}", table.titles, table.rows, sortable=True)
        for table in tables(found, intervals=True)
    ]
    return PageSection(f"{item.name}: {item.title}", sentences, list(pictures), shown)


def pictures_of(running: Running) -> list[Picture]:
    """Return the pictures of an item: of noise, of curves, or over what is swept; none for a table."""
    kind, name = running.found.item.kind, running.found.item.name
    found: list[Picture] = []
    if kind == "noise":
        found = _noise_pictures(running)
    elif kind == "curves":
        found = [_chart(f"{name}-{n}", panels) for n, panels in enumerate(curve_panels(running.found))]
    elif kind == "sweep":
        found = [_chart(name, sweep_panels(running.found), x=running.found.item.swept.replace("_", " "))]
    return [replace(picture, name=f"{name}-{number}") for number, picture in enumerate(found, start=1)]


def _noise_pictures(running: Running) -> list[Picture]:
    """Draw the noise of the first seed's runs: each by itself, and several kinds of noise below one another."""
    runs = [one for one in running.runs if one.seed == running.found.seeds[0]]
    noisy = [collect(one.run) for one in runs]
    found = [
        replace(picture, caption=f"{one.row.title}. {picture.caption}")
        for one, samples in zip(runs, noisy, strict=True)
        for picture in noise_section(one.run, samples).pictures
    ]
    if len(runs) > 1:
        titles = [one.row.title for one in runs]
        found = [*comparison_section(titles, noisy, ReportTable("", [], [])).pictures, *found]
    return found


def curve_panels(found: Reproduction) -> list[list[Panel]]:
    """Return the panels of every picture of curves: one column over all data sets, or all columns of a data set."""
    columns = found.item.columns
    titles = {key: source.title for key, source in found.item.data.items()}
    keys = list(dict.fromkeys(curve.data for curve in found.curves))

    def panel(key: str, column: str) -> Panel:
        lines = {
            curve.title: (list(curve.epochs), list(curve.values))
            for curve in found.curves
            if curve.data == key and curve.column == column
        }
        return Panel(f"{titles[key]}: {COLUMNS[column]}", lines)

    if len(columns) == 1:
        return [[panel(key, columns[0]) for key in keys]] if keys else []
    return [[panel(key, column) for column in columns] for key in keys]


def sweep_panels(found: Reproduction) -> list[Panel]:
    """Return accuracy over what is swept: a panel for every score of a data set, a line for rows that differ in it."""
    item = found.item
    keys = list(dict.fromkeys(line.data for line in found.lines))
    panels = []
    for key, column in product(keys, item.columns):
        lines: dict[str, tuple[list[int], list[float]]] = {}
        for group in (group for group in item.groups if any(row.above for row in group.rows)):
            for row in group.rows:
                line = found.line(key, row.title)
                mean = None if line is None else line.mean(column)
                if mean is not None:
                    xs, ys = lines.setdefault(row.title.rpartition(",")[0], ([], []))
                    xs.append(item.settings_of(group, row, found.scale)[0]["training"][item.swept])
                    ys.append(mean)
        title = COLUMNS[column] if len(keys) == 1 else f"{item.data[key].title}: {COLUMNS[column]}"
        panels.append(Panel(title, lines))
    return panels


def _chart(name: str, panels: Sequence[Panel], *, x: str = "epoch") -> Picture:
    ends = "; ".join(
        f"{panel.title}, {title}: {values[-1]:.4g}" for panel in panels for title, (_, values) in panel.lines.items()
    )
    shown = ", ".join(panel.title for panel in panels)
    return curves_picture(
        name, panels, alt=f"Curves over {x}. Last values: {ends}.", caption=f"{shown}, over {x}.", x=x
    )
