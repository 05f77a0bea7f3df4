"""Ratios of speed and memory, the aims for them, and which are met.

Everything is measured with one thread. What one thread computes is timed by the processor's clock, in turns.

    python benchmarks/bench.py
    python benchmarks/bench.py --only steps fits      # measures these again, beside the others in the file
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from machine import commit
from pinoise.files import write_json
from pinoise.training.folder import describe_environment
from speed import (
    compiled,
    embedding,
    fits,
    freed,
    images,
    libraries,
    memory,
    neighbours,
    processes,
    rivals,
    sparse,
    startup,
    steps,
    streaming,
)
from speed.aims import AIMS, PAPER
from speed.skipping import Skipped

MEASUREMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "steps": steps.measure,
    "libraries": libraries.measure,
    "compiled": compiled.measure,
    "freed": freed.measure,
    "fits": fits.measure,
    "images": images.measure,
    "sparse": sparse.measure,
    "neighbours": neighbours.measure,
    "embedding": embedding.measure,
    "streaming": streaming.measure,
    "memory": memory.measure,
    "startup": startup.measure,
    "processes": processes.measure,
    "umap": rivals.against_umap,
    "lightly": rivals.against_lightly,
}
RESULT = Path(__file__).parent / "results" / "bench.json"


def judged(name: str, ratio: float) -> str:
    """Return a line about one ratio: its value, the aim and whether it is met, or the paper's figure."""
    remark = ""
    if aim := AIMS.get(name):
        remark = f"aim {aim}: {'met' if aim.met(ratio) else 'MISSED'}"
    elif name in PAPER:
        data, figure = PAPER[name]
        remark = f"paper {figure:.2f} ({data})"
    return f"  {name:<64} {ratio:>7.3f}  {remark}"


def keep(path: Path, name: str, found: dict[str, Any]) -> None:
    """Write a measurement into the file of results at once, beside the others that are there."""
    earlier = json.loads(path.read_text(encoding="utf-8"))["measurements"] if path.exists() else {}
    measurements = {**earlier, name: found}
    ordered = {each: measurements[each] for each in MEASUREMENTS if each in measurements}
    head = {"command": "python benchmarks/bench.py", "commit": found["commit"], "environment": describe_environment()}
    write_json(path, {**head, "measurements": ordered})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    measured = commit()  # before the file of results changes
    for name in arguments.only:
        began = time.perf_counter()
        try:
            found = MEASUREMENTS[name]()
        except Skipped as reason:
            found = {"ratios": {}, "skipped": str(reason)}
        found |= {"took": round(time.perf_counter() - began), "commit": measured}
        keep(arguments.out, name, found)
        print(f"{name}, {found['took']} s{': skipped: ' + found['skipped'] if 'skipped' in found else ''}")
        for ratio in found["ratios"].items():
            print(judged(*ratio), flush=True)


if __name__ == "__main__":
    main()
