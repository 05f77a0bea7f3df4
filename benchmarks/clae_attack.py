"""CLAE beside π-noise: the adversarial example searched against x itself, as published, and against x + ε.

Fits of the size of the suite ``vectors``, scored on validation rows of the training part. No test row is used.

    PINOISE_DATA=FOLDER python benchmarks/clae_attack.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pinoise.experiments.fitting import fit_all
from pinoise.experiments.plans import plan
from pinoise.experiments.results import summarise
from pinoise.training.config import merge
from pinoise.training.folder import describe_environment
from validation import SUITE, validation

SETS = ("digits", "wisdm")
SEEDS = (0, 1, 2)
AGAINST = ("itself", "partner")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "PiNDA + CLAE (paper)": ("pinda-paper-clae", {}),
    "PiNDA + CLAE": ("pinda", {"name": "clae"}),
}
"""A recipe of ``pinoise compare``, and the contrastive method where it leaves it open."""


def main() -> None:
    rows = []
    for source in SETS:
        data = validation(source)
        for title, (recipe, method) in METHODS.items():
            for against in AGAINST:
                settings = merge(SUITE.settings, {"method": {**method, "against": against}})
                plans = plan([recipe], SEEDS, settings=settings)
                (line,) = summarise(list(fit_all([data], plans, scores=SUITE.scores, steps=SUITE.steps)))
                scores = {name: [round(line.means[name], 2), round(line.stds[name], 2)] for name in SUITE.scores}
                rows.append({"data": source, "method": title, "against": against, **scores})
                print(rows[-1], flush=True)
    result = {"seeds": SEEDS, "steps": SUITE.steps, "rows": rows, "environment": describe_environment()}
    target = Path(__file__).parent / "results" / "clae_attack.json"
    target.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
