"""The memory of training on a mapped file, with ten times the rows."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pinoise.data.readers import read_file
from pinoise.data.rows import make_rows
from pinoise.training.build import build_standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import fit
from speed.resident import watched
from speed.timing import in_new_process

SMALL, LARGE, FEATURES = 20_000, 200_000, 136
BATCH, HIDDEN = 512, 64  # an epoch over all rows takes seconds


def write_rows(path: Path, count: int) -> None:
    """Write random rows part by part."""
    draw = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, FEATURES))
    for start in range(0, count, SMALL):
        out[start : start + SMALL] = draw.standard_normal((min(SMALL, count - start), FEATURES), dtype=np.float32)
    out.flush()


def peak_of(path: Path) -> float:
    """Return the most memory in MB during an epoch over a file."""
    settings = parse_settings(
        {
            "encoder": {"name": "mlp", "hidden": HIDDEN},
            "training": {"epochs": 1, "batch_size": BATCH, "device": "cpu", "information_draws": 0},
        }
    )
    with watched() as most:
        x = read_file(path)[0].train.x
        standardizer = build_standardizer(settings, x)
        fit(settings, standardizer, make_rows(x, standardizer), reporter=Quiet())
    return round(most[0])


def measure() -> dict[str, Any]:
    """Return the peak of ten times the rows as a share of the peak of the rows."""
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (SMALL, LARGE):
            path = Path(folder, f"{count}.npy")
            write_rows(path, count)
            peaks[str(count)] = in_new_process("memory", str(path))
    ratios = {"memory of training, ten times the rows": round(peaks[str(LARGE)] / peaks[str(SMALL)], 3)}
    return {"ratios": ratios, "peak_mb": peaks, "features": FEATURES}


if __name__ == "__main__":
    print(json.dumps(peak_of(Path(sys.argv[1]))))
