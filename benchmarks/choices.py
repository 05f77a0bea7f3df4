"""What each choice in the default contributes, on a validation part of the training rows. No test row is used.

PINOISE_DATA=FOLDER python benchmarks/choices.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pinoise.data import Dataset
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, few_label_accuracies, knn_accuracy
from pinoise.modes import flushed_denormals
from pinoise.networks.embedding import LEARNED_WEIGHT
from pinoise.noise import PiNoise, Support
from pinoise.training.build import build_embedding, seeded_model
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from pinoise.training.loop import train
from pinoise.training.run import machine_of
from validation import validation

SETS = ("digits", "wisdm", "isolet")
SEEDS = (0,)
STEPS = 500
ROWS = 2000
SHARES = (0.25, 0.5, 1.0)  # weights of the learned block in the joined embedding
VARIANTS: dict[str, dict[str, Any]] = {
    "the default": {},
    "temperature 0.1": {"method": {"temperature": 0.1}},
    "temperature 0.2": {"method": {"temperature": 0.2}},
    "temperature 1": {"method": {"temperature": 1.0}},
    "5 neighbours": {"noise": {"neighbours": 5}},
    "20 neighbours": {"noise": {"neighbours": 20}},
    "plain neighbours": {},
    "no neighbours": {"noise": {"neighbours": 0}},
    "σ = r, frozen": {"training": {"noise_learning_rate": 1e-12}},
    "no prior": {"objective": {"weight": 0.0}},
    "random noise": {"objective": "fixed"},
    "random noise, temperature 0.1": {"objective": "fixed", "method": {"temperature": 0.1}},
    "SCARF": {"views": {"noise": "scarf"}},
    "SCARF, temperature 0.1": {"views": {"noise": "scarf"}, "method": {"temperature": 0.1}},
}


def with_plain_neighbours(noise: PiNoise) -> None:
    """Replace mutual, hub-corrected neighbours by the plain nearest ones."""
    support = noise.support
    assert support is not None  # the default has one
    noise.support = Support(support.bank, numbers=support.numbers, rows=support.rows, k=support.k, mutual=False)


def score(data: Dataset, name: str, seed: int) -> dict[str, float]:
    """Fit one variant and score its joined embedding for several shares of the learned part."""
    assert data.test is not None  # validation() makes a test part
    assert data.train.y is not None
    assert data.test.y is not None
    epochs = -(-STEPS // max(1, len(data.train) // 256))
    shared = {
        "encoder": {"hidden": 512},
        "noise": {"generator": {"hidden": 512}},
        "training": {"epochs": epochs, "seed": seed, "information_draws": 0},
    }
    settings = parse_settings(merge(shared, VARIANTS[name]))
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    model = seeded_model(settings, standardizer, rows)
    if name == "plain neighbours":
        assert model.noise is not None  # the default has some
        with_plain_neighbours(model.noise)
    with flushed_denormals():
        train(model, rows, settings.training, machine=machine_of(settings.training), reporter=Quiet())
    embedding = build_embedding(model.method.encoder, "joined", standardizer, rows)
    z, z_held_out = embed(embedding, rows), embed(embedding, held_out)
    few = few_label_accuracies(z, data.train.y, z_held_out, data.test.y, seed=seed)
    found = {"few": 100 * float(np.mean(few))}
    width = z.shape[1] - model.method.encoder.out_features
    for share in SHARES:
        scale = np.r_[np.ones(width), np.full(z.shape[1] - width, share / LEARNED_WEIGHT)].astype(z.dtype)
        found[f"knn, share {share:g}"] = 100 * knn_accuracy(z * scale, data.train.y, z_held_out * scale, data.test.y)
    return found


def main() -> None:
    datasets = [validation(name, rows=ROWS) for name in SETS]
    rows = []
    for name in VARIANTS:
        for data in datasets:
            found = [score(data, name, seed) for seed in SEEDS]
            means = {key: round(float(np.mean([one[key] for one in found])), 2) for key in found[0]}
            rows.append({"variant": name, "data": data.name, **means})
            print(rows[-1], flush=True)
    result = {"seeds": SEEDS, "steps": STEPS, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "choices.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
