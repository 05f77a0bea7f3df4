"""Write RESULTS.md from the result files of ``pinoise reproduce``, so that no figure is copied by hand.

python benchmarks/reproduced.py [FILE]

``results/reproduce/readings.toml`` says what we think of an item. A figure in it is a place such as
``{reuters21578 | raw features | knn}``, filled in from the result file.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from machine import describe
from pinoise.paper.reproduce.layout import number, tables
from pinoise.paper.reproduce.outcome import Reproduction
from pinoise.paper.reproduce.paper import find_item, item_names
from pinoise.paper.reproduce.verdict import verdict
from pinoise.report.page import ReportTable
from render import RESULTS, ROOT

FOLDER = RESULTS / "reproduce"
HEAD = """# The paper, reproduced

`python benchmarks/reproduced.py` makes this page from the files in `benchmarks/results/reproduce`. The command of an
item made its file; `pinoise reproduce ITEM --scale small --out benchmarks/results/reproduce --force` makes it again.

How to read it:

- *small* is a stated part of the paper's experiment: fewer rows and epochs, on images smaller networks. Its figures say
  whether the paper's *comparisons* come out, not whether its accuracies do. `--scale paper` has the paper's sizes.
- Data that is not public, or not on the machine, has a stand-in, named in every table.
- Accuracies are in percent, mean ± standard deviation over seeds; the paper's beside ours. The last epoch counts. All
  rows have the paper's temperature of 0.1, but for this library's default.
- *Random noise, best σ* has the σ that does best on the test rows, which favours it.
- Accuracies are those of the learned embedding alone, as in the paper, where a row does not say otherwise.
"""


def read(name: str) -> Reproduction | None:
    """Return the committed result of an item, None if there is none."""
    path = FOLDER / f"{name}.json"
    return Reproduction.from_dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def filled(text: str, found: Reproduction) -> str:
    """Return a reading with the figures that its places name."""

    def figure(match: re.Match[str]) -> str:
        data, title, column = (part.strip() for part in match[1].split("|"))
        line = found.line(data, title)
        mean = None if line is None else line.mean(column)
        if mean is None:
            raise ValueError(f"readings.toml, {found.item.name}: {match[0]} is not in its result file")
        return number(mean, column)

    return re.sub(r"\{([^}]*)\}", figure, text)


def markdown(table: ReportTable) -> list[str]:
    """Return a table as Markdown."""
    rows = [table.titles, ["---"] * len(table.titles), *table.rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


def summary(found: Mapping[str, Reproduction | None], readings: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return one line for every item that was run: does it reproduce?"""
    lines = ["| item | | scale | reproduces? |", "| --- | --- | --- | --- |"]
    for name, result in found.items():
        if result is not None:
            stands = readings.get(name, {}).get("reproduces", "see below")
            lines.append(f"| [{name}](#{name.lower()}) | {result.item.title} | {result.scale} | {stands} |")
    return [*lines, ""]


def section(found: Reproduction, reading: str | None) -> list[str]:
    """Return what an item says: claim, verdict, why, what is odd, pictures and tables."""
    item = found.item
    seeds = (
        "" if item.kind in ("data", "cost") else "1 seed; " if len(found.seeds) == 1 else f"{len(found.seeds)} seeds; "
    )
    sizes = [
        f"{used.shown}: {size['train']:,} rows"
        + (f", {size['test']:,} to test on" if size["test"] else "")
        + f", of {' × '.join(map(str, size['shape']))}"
        for used in found.used
        if (size := found.sizes.get(used.key)) is not None
    ]
    lines = [
        f"## {item.name}",
        "",
        f"{item.title} (`{item.label}` in the paper's source).",
        "",
        f"`{found.command}`; {seeds}{describe(dict(found.environment))}",
        "",
    ]
    lines += [f"Data: {'; '.join(sizes)}.", ""] if sizes else []
    masks = [note for note in found.notes if note.startswith("masks")]
    lines += [f"Note: {note}." for note in masks]
    lines += [f"**The paper's claim.** {item.claim}", ""] if item.claim else []
    lines += [f"**Measured.** {verdict(found)}", ""]
    lines += [f"**What we think.** {filled(reading, found)}", ""] if reading else []
    lines += [f"- Odd in the paper: {oddity}" for oddity in item.oddities]
    lines += [""] if item.oddities else []
    for picture in sorted(FOLDER.glob(f"{item.name}-*.png")):
        lines += [f"![{item.title}]({picture.relative_to(ROOT).as_posix()})", ""]
    for table in tables(found):
        lines += [*markdown(table), ""]
    return lines


def missing(names: list[str]) -> list[str]:
    """Return the items without a result file, and what it takes to run them."""
    lines = ["## Not run yet", "", "| item | | `--scale small` takes |", "|---|---|---|"]
    return [
        *lines,
        *(f"| {name} | {find_item(name).title} | {find_item(name).scales['small'].time} |" for name in names),
    ]


def main(path: Path) -> None:
    """Write the page."""
    found = {name: read(name) for name in item_names()}
    readings = tomllib.loads((FOLDER / "readings.toml").read_text(encoding="utf-8"))
    parts = [HEAD, *summary(found, readings)]
    for name, result in found.items():
        if result is not None:
            parts += section(result, readings.get(name, {}).get("why"))
    absent = [name for name, result in found.items() if result is None]
    parts += missing(absent) if absent else []
    path.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "RESULTS.md")
