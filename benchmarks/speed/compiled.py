"""A step whose model went through ``torch.compile`` against the same step as it is.

A compiled model leaves products to torch's usual library. So it is also compared with a step that does the same.
"""

from __future__ import annotations

import shutil
from typing import Any

import torch

from pinoise.modes import flushed_denormals
from pinoise.paper.rehearsal import Rehearsal, training_step
from speed.libraries import with_mkl
from speed.skipping import Skipped
from speed.steps import BATCH, RANDOM, ROWS, settings_of
from speed.timing import Task, in_turns, milliseconds, ratio

VARIANTS = (RANDOM, "the default")
FEATURES = (64, 561)  # the first is as small as digits
TURNS, STEPS = 7, 3


def make_step(variant: str, features: int, *, compiles: bool) -> Task:
    """Return a function that does one training step."""
    settings = settings_of(variant)
    rehearsal = Rehearsal(settings, (features,), ROWS)
    step = training_step(settings, rehearsal.model, rehearsal.rows, batch_size=BATCH)
    if compiles:
        step()  # finds the neighbours, which depend on values: compiled noise keeps those that it has
        rehearsal.model.compile()
    return step


def measure() -> dict[str, Any]:
    """Return the time of compiled steps as multiples of plain ones."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        raise Skipped("torch.compile needs a C++ compiler on a CPU, and none is installed")
    ratios, medians = {}, {}
    for features in FEATURES:
        for variant in VARIANTS:
            torch.compiler.reset()
            plain, compiled = (make_step(variant, features, compiles=compiles) for compiles in (False, True))
            tasks = {"plain": plain, "plain, MKL": with_mkl(plain), "compiled": compiled}
            with flushed_denormals():
                times = in_turns(tasks, turns=TURNS, repeats=STEPS)
            for name in ("plain", "plain, MKL"):
                ratios[f"{variant}, compiled / {name}, d = {features}"] = ratio(times, "compiled", name)
            medians[f"{variant}, d = {features}"] = milliseconds(times)
    return {"ratios": ratios, "milliseconds": medians}
