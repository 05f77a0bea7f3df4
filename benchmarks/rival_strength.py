"""How strong CLAE's adversarial step should be: chosen on a validation part of the training rows of digits.

python benchmarks/clae_strength.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from pinoise.data import Dataset, load
from pinoise.experiments import SCORES, compare, plan, summarise
from pinoise.training.environment import describe_environment

STRENGTHS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
SEEDS = (0, 1, 2)
EPOCHS = 30


def main() -> None:
    train = load("digits").train
    kept, held_out = train_test_split(np.arange(len(train)), test_size=0.25, stratify=train.y, random_state=1)
    data = Dataset("digits, validation", train.take(kept), train.take(held_out))
    rows = []
    for strength in STRENGTHS:
        settings = {"method": {"strength": strength}, "training": {"epochs": EPOCHS}}
        (line,) = summarise(list(compare([data], plan(["clae"], SEEDS, settings=settings))))
        rows.append({"strength": strength, **{name: round(line.means[name], 2) for name in SCORES}})
        print(rows[-1])
    result = {"seeds": SEEDS, "epochs": EPOCHS, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "clae_strength.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
