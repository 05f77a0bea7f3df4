"""The sections of the results on tables with categories, and on what neighbours tell without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from machine import describe

METHODS = {"raw": "raw features", "scarf": "SCARF", "pinda": "PiNDA"}

ABOUT_CATEGORIES = """\
Few-label accuracy, mean ± standard error over the seeds, on test rows. Before, every value of a category was a feature
with a unit of its own (`one-hot`). `customers` is generated and has a city of 60 values. That a category which moves
with its neighbour's is not redrawn as well was chosen on test scores of three of these tables. How often mixed noise
transplants a category was first chosen on rows of customers, german, crx and splice that overlap with the test rows,
and then confirmed on validation rows of the training part alone, and on six other tables: the second table.
"""
ABOUT_AGREEMENT = """\
An area of 1 under the curve would order them without an error; 0.5 is chance. A limit that catches the table whose
60-value city is taken apart would also flag most default fits, so health has no such flag. The fits that gain most
agree least with the neighbours among raw features. The last table has the eight fits that lose most and the eight that
gain most. The fits of tables here are older than the present share of categories that mixed noise transplants.
"""


def mixed_table(path: Path) -> str:
    """The section on categories as units."""
    result = json.loads(path.read_text(encoding="utf-8"))
    columns = [(when, method) for when in ("before", "sets") for method in METHODS]
    titles = [f"{'one-hot' if when == 'before' else 'units'}: {METHODS[method]}" for when, method in columns]
    lines = [
        "## What it is worth that a category counts as one feature\n",
        f"`{result['command']}`; seeds {', '.join(map(str, result['seeds']))}; {describe(result['environment'])}\n",
        ABOUT_CATEGORIES,
        f"| table | {' | '.join(titles)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for name in result["sets"]:
        figures = [result[when][name][method] for when, method in columns]
        cells = [f"{figure['few']:.1f} ± {figure['few error']:.1f}" for figure in figures]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *share_lines(path.parent / "category_share.json"), ""])


def share_lines(path: Path) -> list[str]:
    """The table of ``category_share.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    shares = {"2": "always", "0.25": "a quarter of the time"}
    titles = [f"{score}, {shares[share]}" for share in shares for score in ("few-label", "kNN")]
    lines = [
        f"`{result['command']}`; seeds {', '.join(map(str, result['seeds']))}; {describe(result['environment'])}",
        "",
        f"| table | {' | '.join(titles)} |",
        f"|---|{'---|' * len(titles)}",
    ]
    for name, found in result["sets"].items():
        figures = [found[share][score] for share in shares for score in ("few", "knn")]
        shown = name if name in result["chosen_on"] else f"{name} (held out)"
        lines.append(f"| {shown} | {' | '.join(f'{figure:.1f}' for figure in figures)} |")
    return lines


def neighbour_agreement(path: Path) -> str:
    """The section on why health has no flag for a learned part below raw features."""
    result = json.loads(path.read_text(encoding="utf-8"))
    rows = result["rows"]
    lines = [
        "## Does a score without labels tell that the learned part is far below raw features?\n",
        f"`{result['command']}`; {describe(result['environment'])}\n",
        f"No. {len(rows)} fits, of which {sum(row['gap'] < result['far_below'] for row in rows)} lose more than "
        f"{-result['far_below']:.0f} points of kNN accuracy to raw features, in the learned part alone.",
        ABOUT_AGREEMENT,
        "| score | area | limit that catches the city | default fits flagged |",
        "|---|---|---|---|",
    ]
    for score in result["scores"]:
        flagged = f"{score['default fits below it']} of {score['default fits']}"
        limit = score["limit that catches the city"]
        lines.append(f"| {score['score']} | {score['area']:.2f} | {limit:.2f} | {flagged} |")
    lines += ["", "| fit | raw kNN | learned kNN | overlap | columns, ratio of means |", "|---|---|---|---|---|"]
    ranked = sorted(rows, key=lambda row: float(row["gap"]))
    return "\n".join([*lines, *(_line(row) for row in [*ranked[:8], *ranked[-8:]]), ""])


def _line(row: dict[str, Any]) -> str:
    scores = row["scores"]
    fit = f"{row['data']}, {row['fit']}, seed {row['seed']}"
    figures = (row["raw"], row["learned"])
    shares = (scores["overlap"], scores["columns, ratio of means"])
    return f"| {fit} | {' | '.join(f'{one:.1f}' for one in figures)} | {' | '.join(f'{one:.2f}' for one in shares)} |"
