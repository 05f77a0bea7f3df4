"""Does π-noise gain by an adversarial example beside it, as CLAE has it? On validation rows; no test row is used.

PINOISE_DATA=FOLDER python benchmarks/with_clae.py

Sizes are those of the suite ``vectors``, and so are the sets: all 30. Test scores of all of them had been seen when the
question was asked, so nothing here is blind. Finished fits are kept in ``results/with_clae.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pinoise.data import Dataset
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.plans import with_steps
from pinoise.experiments.ranking import mean_ranks
from pinoise.files import read_json, write_json
from pinoise.modes import flushed_denormals
from pinoise.networks.embedding import Raw
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import SUITE, fitted, scores, validation

SEED = 0
RAW = "raw features"
VARIANTS: Mapping[str, dict[str, Any]] = {
    "PiNDA": {},
    "CLAE": {"method": "clae", "views": {"noise": "none"}},
    "PiNDA with CLAE": {"method": "clae"},
    "PiNDA with CLAE, α = 0.25": {"method": {"name": "clae", "weight": 0.25}},
    "PiNDA with CLAE, e = 0.2": {"method": {"name": "clae", "strength": 0.2}},
    "random noise (σ = 1)": {"objective": "fixed", "noise": {"initial_scale": 1.0}},
    "random noise (σ = 1) with CLAE": {"objective": "fixed", "noise": {"initial_scale": 1.0}, "method": "clae"},
}
TARGET = Path(__file__).parent / "results" / "with_clae.json"


def study(data: Dataset) -> dict[str, dict[str, float]]:
    """Return the accuracies of every variant, and of raw features, in percent."""
    assert data.test is not None  # validation() makes a test part
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    found = {}
    for name, variant in VARIANTS.items():
        shared = merge(SUITE.settings, {"training": {"seed": SEED, "information_draws": 0}})
        settings = with_steps(parse_settings(merge(shared, variant)), SUITE.steps, rows=len(data.train))
        encoder = fitted(settings, standardizer, rows).method.encoder
        embedding = build_embedding(encoder, "joined", standardizer, rows)
        found[name] = scores(embedding, data, rows, held_out, seed=SEED)
    raw = Raw(unit_rows=embedding.unit_rows)
    return {RAW: scores(raw, data, rows, held_out, seed=SEED), **found}


def summarise(sets: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, for both scores, every variant's mean, mean rank, worst loss against raw features, and sets above them.

    >>> toy = {"few": 80.0, "knn": 90.0}, {"few": 82.0, "knn": 89.0}
    >>> summarise({"toy": {RAW: toy[0], "PiNDA": toy[1]}})["few"]["PiNDA"]
    {'mean': 82.0, 'rank': 1.0, 'worst': 2.0, 'above': 1}
    """
    result = {}
    for score in ("few", "knn"):
        table = {name: {variant: value[score] for variant, value in found.items()} for name, found in sets.items()}
        ranks = mean_ranks(table)
        result[score] = {
            variant: {
                "mean": round(sum(row[variant] for row in table.values()) / len(table), 2),
                "rank": round(rank, 2),
                "worst": round(min(row[variant] - row[RAW] for row in table.values()), 2),
                "above": sum(row[variant] > row[RAW] for row in table.values()),
            }
            for variant, rank in ranks.items()
        }
    return result


def main() -> None:
    torch.set_num_threads(1)
    sets: dict[str, Any] = read_json(TARGET)["sets"] if TARGET.exists() else {}
    with flushed_denormals():
        for name in SUITE.sources:
            if name in sets:
                continue
            sets[name] = study(validation(name))
            print(name, sets[name], flush=True)
            result = {"seed": SEED, "summary": summarise(sets), "sets": sets, "environment": describe_environment()}
            write_json(TARGET, result)


if __name__ == "__main__":
    main()
