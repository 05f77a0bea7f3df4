"""A step whose products go to the faster library against one with torch's usual library, MKL."""

from __future__ import annotations

from typing import Any

import torch

from pinoise.modes import flushed_denormals
from speed.steps import RANDOM, make_products, make_step
from speed.timing import Task, in_turns, milliseconds, ratio

FEATURES, TURNS, STEPS = 561, 5, 2


def with_mkl(task: Task) -> Task:
    """Return the task with all products left to MKL."""

    def run() -> None:
        with torch.backends.mkldnn.flags(enabled=False):
            task()

    return run


def measure() -> dict[str, Any]:
    """Return how many times as fast the step is, and what share of MKL's products a step with MKL reaches."""
    products, _ = make_products(FEATURES)
    step = make_step(RANDOM, FEATURES)
    tasks = {"step": step, "step with MKL": with_mkl(step), "MKL's products": with_mkl(products)}
    with flushed_denormals():
        times = in_turns(tasks, turns=TURNS, repeats=STEPS)
    ratios = {
        f"step with MKL / step, d = {FEATURES}": ratio(times, "step with MKL", "step"),
        f"step with MKL / MKL's products, d = {FEATURES}": round(
            1 / ratio(times, "step with MKL", "MKL's products"), 3
        ),
    }
    return {"ratios": ratios, "milliseconds": milliseconds(times)}
