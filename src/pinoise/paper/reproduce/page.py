"""Reproductions of the paper's tables and figures as a page, and as files of results with their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from pinoise.files import to_json
from pinoise.paper.reproduce.layout import tables
from pinoise.paper.reproduce.outcome import Reproduction
from pinoise.paper.reproduce.paper import COLUMNS
from pinoise.paper.reproduce.run import ItemRun
from pinoise.paper.reproduce.verdict import verdict
from pinoise.report.charts import Panel, draw_curves
from pinoise.report.collect import collect
from pinoise.report.page import Picture, render
from pinoise.report.pictures import draw_comparison, draw_noise
from pinoise.report.write import write_all


def write_reproductions(finished: Sequence[ItemRun], *, page: Path | None, folder: Path | None) -> None:
    """Write a page about some items, and to a folder a file of results for each, with its pictures.

    Args:
        finished: what was run.
        page: the HTML file; none if None.
        folder: for ``T2.json``, ``F1-1.png``, ``F8-1.svg`` and so on; none if None.
    """
    pictures = [pictures_of(running) for running in finished]
    files: dict[Path, bytes] = {}
    for running, drawn in zip(finished, pictures, strict=True):
        if folder is not None:
            files[folder / f"{running.found.item.name}.json"] = f"{to_json(running.found.as_dict())}\n".encode()
            files |= {folder / picture.file: picture.content for picture in drawn}
    if page is not None:
        found = [running.found for running in finished]
        verdicts, shown = map(verdict, found), [tables(one, intervals=True) for one in found]
        items = list(zip(found, shown, pictures, verdicts, strict=True))
        template = "paper/reproduce/page.html.jinja"
        files[page] = render(template, title="The paper's figures beside ours", items=items).encode()
    write_all(files)


def pictures_of(running: ItemRun) -> list[Picture]:
    """Return the pictures of an item: of noise, of curves, or over what is swept; none for a table."""
    item = running.found.item
    if item.kind == "noise":
        return _noise_pictures(running)
    shown = {"curves": curve_panels, "sweep": sweep_panels}.get(item.kind)
    x = item.swept.replace("_", " ") if item.kind == "sweep" else "epoch"
    panels = [] if shown is None else shown(running.found)
    return [draw_curves(f"{item.name}-{number}", panel, x=x) for number, panel in enumerate(panels, start=1)]


def _noise_pictures(running: ItemRun) -> list[Picture]:
    """Draw the noise of the first seed's runs: several kinds of noise below one another, and each by itself."""
    name = running.found.item.name
    runs = [(one.row.title, collect(one.run)) for one in running.runs if one.seed == running.found.seeds[0]]
    found = [draw_comparison(f"{name}-1", runs)] if len(runs) > 1 else []
    for title, noisy in runs:
        found.append(draw_noise(f"{name}-{len(found) + 1}", noisy, caption=f"{title}. "))
    return found


def curve_panels(found: Reproduction) -> list[Panel]:
    """Return a panel for every data set and column."""
    keys = dict.fromkeys(curve.data for curve in found.curves)
    return [
        Panel(
            f"{found.item.data[key].title}: {COLUMNS[column]}",
            {
                curve.title: (list(curve.epochs), list(curve.values))
                for curve in found.curves
                if (curve.data, curve.column) == (key, column)
            },
        )
        for key, column in product(keys, found.item.columns)
    ]


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
