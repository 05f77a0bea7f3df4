"""The cost of learned noise: the default fit against random noise on HAPT-561, timed in turns in one process.

PINOISE_DATA=FOLDER python benchmarks/fit_cost.py
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

from pinoise.data import load
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.config import parse_settings
from pinoise.training.device import describe_environment, flushed_denormals
from pinoise.training.progress import Quiet
from pinoise.training.run import fit

ROUNDS = 4
EPOCHS = 20
VARIANTS: dict[str, dict[str, Any]] = {"random noise": {"objective": "fixed"}, "the default": {}}


def main() -> None:
    x = load("hapt561").train.x
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with flushed_denormals():
        for _ in range(ROUNDS):
            for name, settings in VARIANTS.items():
                began = time.perf_counter()
                fit(
                    parse_settings({**settings, "training": {"epochs": EPOCHS, "information_draws": 0}}),
                    standardizer,
                    rows,
                    reporter=Quiet(),
                )
                seconds[name].append(round(time.perf_counter() - began, 2))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ratio = statistics.median(
        default / random for default, random in zip(seconds["the default"], seconds["random noise"], strict=True)
    )
    print(f"{medians}, ratio {ratio:.2f} (median of {ROUNDS} rounds)")
    result = {
        "rows": len(rows),
        "epochs": EPOCHS,
        "seconds": seconds,
        "ratio": round(ratio, 3),
        "environment": describe_environment(),
    }
    target = Path(__file__).parent / "results" / "fit_cost.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
