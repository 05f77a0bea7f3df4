"""How far may σ, the metric of the neighbours, move before they are searched again? On validation rows; no test row.

PINOISE_DATA=FOLDER python benchmarks/metric_moves.py

Sizes are those of the suite ``vectors``, the sets are those that choices are made on. A limit is the mean move of log σ
after which neighbours are searched again; none keeps those of the prior.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from machine import commit
from pinoise.data import Dataset
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.plans import with_steps
from pinoise.files import write_json
from pinoise.noise import support
from pinoise.noise.search import nearest_others
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.device import describe_environment, flushed_denormals
from validation import SUITE, fitted, scores, validation

SEED = 0
LIMITS = {"0.02": 0.02, "0.1": 0.1, "none": math.inf}
TARGET = Path(__file__).parent / "results" / "metric_moves.json"


def study(data: Dataset) -> dict[str, dict[str, float]]:
    """Return the accuracies of the default for every limit, in percent, and how often it searched."""
    assert data.test is not None  # validation() makes a test part
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    settings = parse_settings(merge(SUITE.settings, {"training": {"seed": SEED, "information_draws": 0}}))
    found = {}
    for name, limit in LIMITS.items():
        searched = mock.Mock(side_effect=nearest_others)
        with mock.patch.multiple(support, STALE_AFTER=limit, nearest_others=searched):
            model = fitted(with_steps(settings, SUITE.steps, rows=len(data.train)), standardizer, rows)
        embedding = build_embedding(model.method.encoder, "joined", standardizer, rows)
        found[name] = scores(embedding, data, rows, held_out, seed=SEED) | {"searches": searched.call_count}
    return found


def main() -> None:
    torch.set_num_threads(1)
    measured = commit()  # before the file of results changes
    sets: dict[str, Any] = {}
    with flushed_denormals():
        for name in SUITE.chosen_on:
            sets[name] = study(validation(name))
            print(name, sets[name], flush=True)
    means = {
        limit: {key: round(sum(found[limit][key] for found in sets.values()) / len(sets), 2) for key in scored}
        for limit, scored in sets[SUITE.chosen_on[0]].items()
    }
    about = {"command": "python benchmarks/metric_moves.py", "commit": measured, "seed": SEED, "steps": SUITE.steps}
    write_json(TARGET, {**about, "means": means, "sets": sets, "environment": describe_environment()})
    print(means)


if __name__ == "__main__":
    main()
