"""Choose the strengths of rivals on a validation part of the training rows of digits.

Each rival with a strength gets the value that does best here. It gets no other tuning.

python benchmarks/rival_strength.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from pinoise.choices import SCORES
from pinoise.data import Dataset, load
from pinoise.experiments.fitting import fit_all
from pinoise.experiments.plans import plan
from pinoise.experiments.results import summarise
from pinoise.training.folder import describe_environment

STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
SEEDS = (0, 1, 2)
EPOCHS = 60
RIVALS: dict[str, Callable[[float], dict[str, Any]]] = {
    "clae": lambda strength: {"method": {"strength": strength}},
    "viewmaker": lambda budget: {"views": {"noise": {"budget": budget}}},
    "simcl": lambda strength: {"method": {"strength": 4 * strength}},
}


def main() -> None:
    train = load("digits").train
    kept, held_out = train_test_split(np.arange(len(train)), test_size=0.25, stratify=train.y, random_state=1)
    data = Dataset("digits, validation", train.take(kept), train.take(held_out))
    rows = []
    for rival, changed in RIVALS.items():
        for strength in STRENGTHS:
            settings = {
                "encoder": {"hidden": 512},
                "noise": {"generator": {"hidden": 512}},
                "training": {"epochs": EPOCHS},
            }
            plans = plan([rival], SEEDS, settings={**settings, **changed(strength)})
            (line,) = summarise(list(fit_all([data], plans)))
            rows.append({"rival": rival, **changed(strength), **{name: round(line.means[name], 2) for name in SCORES}})
            print(rows[-1], flush=True)
    result = {"seeds": SEEDS, "epochs": EPOCHS, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "rival_strength.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
