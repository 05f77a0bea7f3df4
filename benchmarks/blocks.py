"""How large the learned block of the embedding should be, and the whole of it, on validation rows. No test row is used.

One default fit per data set; its two blocks are then weighed in several ways.

PINOISE_DATA=FOLDER python benchmarks/blocks.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pinoise.data import Dataset
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, few_label_accuracies, knn_accuracy
from pinoise.experiments.plans import with_steps
from pinoise.modes import flushed_denormals
from pinoise.networks.embedding import LEARNED_WEIGHT
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import SUITE, fitted, validation

WEIGHTS = (0.0, 0.25, 0.35, 0.5, 0.7, 1.0)  # of the learned block; 0 leaves the raw features
SIZES = (1 / 16, 1 / 4, 1.0, 4.0)  # factors of the whole embedding; kNN does not depend on them
SEED = 0


def study(data: Dataset) -> dict[str, Any]:
    """Fit the default, and return the accuracies of its embedding in percent for every weight and every size."""
    assert data.test is not None  # validation() makes a test part
    y, y_held_out = data.train.y, data.test.y
    assert y is not None
    assert y_held_out is not None
    shared = merge(SUITE.settings, {"training": {"seed": SEED, "information_draws": 0}})
    settings = with_steps(parse_settings(shared), SUITE.steps, rows=len(data.train))
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    encoder = fitted(settings, standardizer, rows).method.encoder
    embedding = build_embedding(encoder, "joined", standardizer, rows)
    z, z_held_out = embed(embedding, rows), embed(embedding, held_out)
    learned = np.arange(z.shape[1]) >= z.shape[1] - encoder.out_features

    def few(factor: Any) -> float:
        found = few_label_accuracies(z * factor, y, z_held_out * factor, y_held_out, seed=SEED)
        return round(100 * float(np.mean(found)), 2)

    def weighed(weight: float) -> dict[str, float]:
        factor = np.where(learned, weight / LEARNED_WEIGHT, 1).astype(z.dtype)
        knn = knn_accuracy(z * factor, y, z_held_out * factor, y_held_out)
        return {"few": few(factor), "knn": round(100 * knn, 2)}

    return {
        "data": data.name,
        "weights": {f"{weight:g}": weighed(weight) for weight in WEIGHTS},
        "sizes": {f"{size:g}": few(np.asarray(size, dtype=z.dtype)) for size in SIZES},
    }


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    with flushed_denormals():
        for name in SUITE.chosen_on:
            rows.append(study(validation(name)))
            print(rows[-1], flush=True)
    result = {"seed": SEED, "steps": SUITE.steps, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "blocks.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
