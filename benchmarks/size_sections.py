"""The sections of the results on size, speed and survival."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from machine import describe
from speed import tables as speed_tables

SETS = {
    "ranking": "{rows} × 136, the shape of MSLR-WEB30K",
    "mixed": "{rows} rows of numbers with gaps, categories, truth values, dates",
}


def neighbours(path: Path) -> str:
    """The section on neighbours among many rows."""
    return "\n".join(["## Neighbours among all rows\n", *neighbours_lines(path), ""])


def neighbours_lines(path: Path) -> list[str]:
    """The tables of ``neighbours_at_size.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    cases: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in result["accuracy"]:
        cases.setdefault((row["set"], row["rows"], row["way"]), []).append(row)
    scores = {"few": "few-label", "knn": "kNN", "raw_few": "raw, few-label", "raw_knn": "raw, kNN"}
    lines = [
        f"`python benchmarks/neighbours_at_size.py accuracy`, commit {_commits(result['accuracy'])}; "
        f"{describe(result['environment'])}",
        "",
        f"| | rows | neighbours among | seeds | {' | '.join(scores.values())} | ms a step | indexes |",
        f"|---|---|---|---|{'---|' * len(scores)}---|---|",
    ]
    for (name, rows, way), found in cases.items():
        figures = [f"{fmean(row[score] for row in found):.1f}" for score in scores]
        cost = f"{fmean(row['milliseconds'] for row in found):.0f} | {fmean(row['indexes'] for row in found):.0f}"
        lines.append(f"| {name} | {rows} | {way} | {len(found)} | {' | '.join(figures)} | {cost} |")
    how = f"`python benchmarks/neighbours_at_size.py search`, commit {_commits(result['search'])}"
    lines += ["", f"{how}; 136 features, batches of 256", ""]
    lines += ["| rows | search | recall | ms a batch | s to build |", "|---|---|---|---|---|"]
    for row in result["search"]:
        lines.append(
            f"| {row['rows']} | {row['way']} | {row['recall']:.3f} | {row['milliseconds']:.1f} | {row['build_s']:.1f} |"
        )
    return lines


def _commits(rows: Iterable[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(row["commit"] for row in rows))


def memory_lines(path: Path) -> list[str]:
    """The table of ``larger_than_memory.py``."""
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    machines = [found["environment"] for found in results.values()]
    lines = [
        f"`python benchmarks/larger_than_memory.py`, commit {_commits(machines)}; {describe(machines[0])}",
        "",
        "| Parquet | on disk, converted | `train`, peak memory | `embed`, peak memory | steps in files to in memory |",
        "|---|---|---|---|---|",
    ]
    for name, found in results.items():
        rows = f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[len(str(found['rows'])) - 1]}"
        work = [f"{found[verb]['peak_mb']} MB, {found[verb]['seconds']:.0f} s" for verb in ("train", "embed")]
        rate = f"{found['step_rate']['ratio']:.2f}" if "step_rate" in found else "–"
        disk = f"{found['source_gb']:.2f} → {found['rows_on_disk_gb']:.2f} GB"
        title = SETS[name.partition("-")[0]].format(rows=rows)
        lines.append(f"| {title} | {disk} | {' | '.join(work)} | {rate} |")
    return lines


def bench(path: Path) -> str:
    """The section on speed."""
    return "\n".join(["## Speed\n", *bench_lines(path), ""])


def bench_lines(path: Path) -> list[str]:
    """The ratios of ``make bench`` with the aims, and a line about how they were made."""
    result = json.loads(path.read_text(encoding="utf-8"))
    return [
        f"`make bench`, commit {_commits(result['measurements'].values())}; {describe(result['environment'])}",
        "",
        *speed_tables.ratios(result),
    ]


def hostile(path: Path) -> str:
    """The section on the hostile suite."""
    return "\n".join(["## Hostile inputs\n", *hostile_lines(path), ""])


def hostile_lines(path: Path) -> list[str]:
    """The table of ``make hostile`` and a line about how it was made."""
    result = json.loads(path.read_text(encoding="utf-8"))
    kinds = ("sentence", "right", "failure")
    rows = {**result["families"], "all": {k: sum(f[k] for f in result["families"].values()) for k in kinds}}
    lines = [
        f"`make hostile`, seed {result['seed']}, version {result['version']}; {describe(result['environment'])}",
        "",
        "| family | cases | one sentence | right result | failures |",
        "|---|---|---|---|---|",
    ]
    for family, counts in rows.items():
        cells = [sum(counts.values()), *(counts[kind] for kind in kinds)]
        lines.append(f"| {family} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    return lines


def faults(path: Path) -> str:
    """The section on the fault suite."""
    return "\n".join(["## Kills at random instants\n", *faults_lines(path), ""])


def faults_lines(path: Path) -> list[str]:
    """The table of ``make faults`` and a line about how it was made."""
    result = json.loads(path.read_text(encoding="utf-8"))
    kinds = ("kills", "while_writing", "cases")
    rows = {**result["families"], "all": {k: sum(f[k] for f in result["families"].values()) for k in kinds}}
    lines = [
        f"`make faults`, seed {result['seed']}, commit {result['commit'][:12]}, {result['seconds'] / 60:.0f} minutes; "
        f"{describe(result['environment'])} Failures: {len(result['failures'])}.",
        "",
        "| killed | kills | while a file was written | chains of kills |",
        "|---|---|---|---|",
    ]
    return [*lines, *(f"| {row} | {' | '.join(str(counts[kind]) for kind in kinds)} |" for row, counts in rows.items())]
