"""The cost of a training step: its FLOP rate against its matrix products alone, and learned against random noise.

Everything is timed in turns in one process, and medians are taken, so that a busy machine slows everything equally.

    python benchmarks/step_cost.py --features 561 --batch 256
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from pinoise.training.config import parse_settings
from pinoise.training.device import describe_environment, flushed_denormals
from pinoise.training.rehearsal import Rehearsal, training_step

VARIANTS: dict[str, dict[str, Any]] = {
    "random noise": {"objective": "fixed"},
    "π-noise, mlp": {"noise": {"generator": "mlp"}},
    "π-noise, mlp, μ learned": {"noise": {"generator": "mlp", "mean": "learned"}},
    "π-noise, shared": {"noise": {"generator": "shared"}},
}
STEPS = 8  # in a turn
ROWS = 4096


def make_step(changes: dict[str, Any], features: int, batch_size: int) -> tuple[Callable[[], None], int]:
    """Return a function that does one real training step, gather and optimiser included, and the step's FLOPs."""
    settings = parse_settings({**changes, "training": {"batch_size": batch_size, "device": "cpu"}})
    rehearsal = Rehearsal(settings, (features,), ROWS)
    step = training_step(settings, rehearsal.model, rehearsal.rows, batch_size=batch_size)
    with FlopCounterMode(display=False) as counter:
        step()
    return step, counter.get_total_flops()


def make_products(features: int, batch_size: int) -> tuple[Callable[[], None], int]:
    """Return a function that does the matrix products of a random-noise step and nothing else, and their FLOPs."""
    m, widths = 2 * batch_size, [features, 1024, 1024, 256, 256, 128]
    operands = []
    for inputs, outputs in pairwise(widths):
        x, w, gradient = torch.randn(m, inputs), torch.randn(outputs, inputs), torch.randn(m, outputs)
        operands += [(x, w.T), (gradient.T, x)]
        if inputs != features:  # no gradient with respect to the samples
            operands.append((gradient, w))

    def products() -> None:
        for a, b in operands:
            torch.mm(a, b)

    return products, sum(2 * a.shape[0] * a.shape[1] * b.shape[1] for a, b in operands)


def measure(tasks: dict[str, Callable[[], None]], *, turns: int) -> dict[str, float]:
    """Return the median seconds of each task, timed in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(turns + 1):
        for name, task in tasks.items():
            began = time.perf_counter()
            for _ in range(STEPS):
                task()
            if turn:  # the first turn warms up
                seconds[name].append((time.perf_counter() - began) / STEPS)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[136, 561, 2000])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "step_cost.json")
    arguments = parser.parse_args()

    results = []
    for features in arguments.features:
        product, product_flops = make_products(features, arguments.batch)
        steps = {name: make_step(changes, features, arguments.batch) for name, changes in VARIANTS.items()}
        tasks = {"product": product, **{name: step for name, (step, _) in steps.items()}}
        with flushed_denormals():  # as in the training loop
            seconds = measure(tasks, turns=arguments.turns)
        rate = product_flops / seconds["product"]
        print(f"d = {features}, batch {arguments.batch}: matrix products reach {rate / 1e9:.0f} GFLOP/s")
        for name, (_, flops) in steps.items():
            row = {
                "features": features,
                "batch": arguments.batch,
                "variant": name,
                "milliseconds": round(1e3 * seconds[name], 2),
                "gflop": round(flops / 1e9, 3),
                "fraction_of_product_rate": round(flops / seconds[name] / rate, 3),
                "ratio_to_random_noise": round(seconds[name] / seconds["random noise"], 3),
            }
            results.append(row)
            print(
                f"  {name:<24} {row['milliseconds']:>7} ms  {row['gflop']:>7} GFLOP"
                f"  {row['fraction_of_product_rate']:>6} of the product rate"
                f"  {row['ratio_to_random_noise']:>6}× random noise"
            )
    arguments.out.write_text(
        json.dumps({"environment": describe_environment(), "results": results}, indent=2, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
