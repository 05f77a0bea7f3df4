"""A training step on rows of a mapped file against one on rows in memory."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from pinoise.data.readers import read_file
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.modes import flushed_denormals
from pinoise.paper.rehearsal import training_step
from pinoise.training.build import seeded_model
from pinoise.training.config import parse_settings
from speed.timing import in_turns, milliseconds, ratio

ROWS, FEATURES, BATCH = 100_000, 136, 256
TURNS, STEPS = 5, 4


def measure() -> dict[str, Any]:
    """Return how fast a step from the file is, as a share of one from memory."""
    settings = parse_settings({"training": {"batch_size": BATCH, "device": "cpu"}})
    x = np.random.default_rng(0).standard_normal((ROWS, FEATURES), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npy")
        np.save(path, x)
        mapped = read_file(path)[0].train.x
        standardizer = Standardizer.fit(x)
        tasks = {}
        for name, source in (("memory", x), ("mapped", mapped)):
            rows = make_rows(source, standardizer)
            model = seeded_model(settings, standardizer, rows)
            tasks[name] = training_step(settings, model, rows, batch_size=BATCH)
        with flushed_denormals():
            times = in_turns(tasks, turns=TURNS, repeats=STEPS, clock=time.perf_counter)
    ratios = {"mapped .npy / in memory, steps a second": ratio(times, "memory", "mapped")}
    return {"ratios": ratios, "rows": ROWS, "features": FEATURES, "milliseconds": milliseconds(times)}
