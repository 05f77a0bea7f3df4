"""What the paper's items take at its own scale on one A100: a calculation by ``pinoise cost``, nothing is run.

    python benchmarks/paper_hours.py

A ResNet50 reaches 23 TFLOP/s on an A100 with TF32 and 61 with mixed precision, by the images a second that NVIDIA
publishes (DeepLearningExamples, ResNet50 v1.5: 938 and 2,470 at 224 pixels). Assumed are 50, with mixed precision, and
at least 3 ms for a step, in which the GPU waits for the launches of small operations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pinoise.experiments.plans import plan
from pinoise.experiments.recipes import is_trained
from pinoise.paper.catalogue import entry
from pinoise.paper.cost import cost_of, size_of_data
from pinoise.paper.reproduce.paper import Item, find_item, item_names
from pinoise.training.config import Settings, merge, parse_settings, read_yaml
from render import ROOT, put

TFLOPS = 50
LEAST_STEP = 0.003  # seconds
ON_GPU = {"training": {"precision": "bf16-mixed"}}
MASKS = {"views": {"noise": {"masks": "masks.npy"}}}  # any: they are not read
FOLDER = ROOT / "examples" / "paper"
RESULT = Path(__file__).parent / "results" / "paper_hours.json"


class Fit(NamedTuple):
    """One fit of an item, without its seed."""

    title: str
    hours: float
    gigabytes: float


def fits(item: Item) -> Iterator[Fit]:
    """Yield the fits of an item at the paper's scale."""
    for key in item.sets("paper"):
        facts, side = entry(item.data[key].source), item.pixels(key, "paper")
        shape = facts.shape if side is None else (side, side, *facts.shape[2:])
        for group, row in item.rows_on(key):
            for recipe in filter(is_trained, row.recipes):
                settings, usual = item.settings_of(group, row, "paper")
                options = merge(usual, MASKS if recipe == "aug-background" else {})
                (planned,) = plan([recipe], [0], settings=merge(settings, ON_GPU), usual=options).values()
                rows = min(facts.rows[0], item.scales["paper"].rows or facts.rows[0])
                seconds, size = _cost(_counting(planned), shape, rows)
                yield Fit(
                    f"{item.data[key].title}, {row.title.removeprefix(f'{item.data[key].title}, ')}",
                    planned.training.epochs * seconds / 3600,
                    size,
                )


def _counting(settings: Settings) -> str:
    """Return what the cost of an epoch depends on."""
    return settings.model_dump_json(exclude={"data": True, "training": {"epochs", "seed"}})


@cache
def _cost(settings: str, shape: tuple[int, ...], rows: int) -> tuple[float, float]:
    """Return the seconds of an epoch and the peak memory in GB."""
    found = cost_of(parse_settings(json.loads(settings)), shape, rows).on_machine(1e12 * TFLOPS)
    return found.steps * max(LEAST_STEP, found.whole.seconds or 0), found.whole.memory / 1e9


def summary(item: Item) -> dict[str, Any]:
    """Return the numbers of an item."""
    found, seeds = list(fits(item)), item.scales["paper"].seeds
    largest = max(found, key=lambda fit: fit.gigabytes)
    return {
        "item": item.name,
        "fits": len(found) * seeds,
        "seeds": seeds,
        "hours": round(seeds * sum(fit.hours for fit in found), 1),
        "longest_fit_hours": round(max(fit.hours for fit in found), 2),
        "largest_gb": round(largest.gigabytes, 1),
        "largest": largest.title,
    }


def configuration(path: Path) -> dict[str, Any]:
    """Return the numbers of a configuration file, for each GPU that it asks for."""
    settings = parse_settings(read_yaml(path))
    found = cost_of(settings, *size_of_data(settings.data)[:2]).on_machine(1e12 * TFLOPS)
    hours = settings.training.epochs * found.steps * max(LEAST_STEP, found.whole.seconds or 0) / 3600
    return {
        "file": path.name,
        "gpus": settings.training.devices,
        "base_gb": round(found.base.memory / 1e9, 1),
        "added_gb": round(found.added.memory / 1e9, 1),
        "hours": round(hours, 1),
    }


def configuration_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of configurations."""
    head = ["| configuration | GPUs | GB, base | GB, π-noise adds | hours |", "|---|---|---|---|---|"]
    return head + [
        f"| [{row['file']}]({row['file']}) | {row['gpus']} | {row['base_gb']} | {row['added_gb']} | {row['hours']:,} |"
        for row in rows
    ]


def item_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of items."""
    head = ["| item | fits | hours | of the longest fit | GB, most | of |", "|---|---|---|---|---|---|"]
    columns = ("item", "fits", "hours", "longest_fit_hours", "largest_gb", "largest")
    lines = [[f"{row[name]:,}" if isinstance(row[name], float) else str(row[name]) for name in columns] for row in rows]
    return head + [f"| {' | '.join(line)} |" for line in lines]


def main() -> None:
    result: dict[str, Any] = {"tflops": TFLOPS, "least_step_seconds": LEAST_STEP, "settings": ON_GPU}
    result["configurations"] = [configuration(path) for path in sorted(FOLDER.glob("*.yaml"))]
    items = [find_item(name) for name in item_names()]
    result["items"] = [summary(item) for item in items if item.kind not in ("data", "cost")]
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    put(FOLDER / "README.md", "configurations", configuration_lines(result["configurations"]))
    put(FOLDER / "README.md", "items", item_lines(result["items"]))


if __name__ == "__main__":
    main()
