"""Does learned noise find the features that do not matter? AUC of σ for known nuisance, for every objective.

python benchmarks/nuisance.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.synthetic import nuisance_auc, nuisance_problem
from pinoise.training.config import parse_settings
from pinoise.training.device import describe_environment
from pinoise.training.fit import fit
from pinoise.training.progress import Quiet

SEEDS = (0, 1, 2)
SHARED: dict[str, Any] = {"encoder": {"hidden": 512}, "training": {"epochs": 100, "information_draws": 0}}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "supported (the default)": {},
    "supported, flat start, no prior": {
        "objective": {"name": "supported", "weight": 0.0},
        "noise": {"initial_scale": 0.5},
    },
    "paper": {"objective": "paper", "method": {"temperature": 0.1}, "noise": {"generator": {"hidden": 512}}},
    "adversarial": {"objective": "adversarial", "noise": {"generator": {"hidden": 512}}},
    "information": {"objective": "information", "noise": {"generator": {"hidden": 512}}},
}


def measure(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train on one draw of the problem and return the AUC at the start and at the end."""
    problem = nuisance_problem(seed=seed)
    standardizer = Standardizer.fit(problem.x)
    rows = make_rows(problem.x, standardizer)
    training = {**SHARED["training"], "seed": seed}
    fitted = fit(parse_settings({**SHARED, **settings, "training": training}), standardizer, rows, reporter=Quiet())
    assert fitted.model.noise is not None  # every objective here has some
    with torch.no_grad():
        sigma = fitted.model.noise.relative_scale(rows[torch.arange(256)]).mean(dim=0)
    return {
        "auc": nuisance_auc(sigma.numpy(), problem),
        "start": nuisance_auc(fitted.model.noise.initial_scale.numpy(), problem),
        "flags": [flag.name for flag in fitted.flags],
    }


def main() -> None:
    rows = []
    for name, settings in OBJECTIVES.items():
        found = [measure(settings, seed) for seed in SEEDS]
        rows.append(
            {
                "objective": name,
                "auc_mean": round(float(np.mean([one["auc"] for one in found])), 3),
                "auc_min": round(min(one["auc"] for one in found), 3),
                "start": round(float(np.mean([one["start"] for one in found])), 3),
                "flags": sorted({flag for one in found for flag in one["flags"]}),
            }
        )
        print(rows[-1], flush=True)
    result = {"seeds": SEEDS, "settings": SHARED, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "nuisance.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
