"""Does learned noise find the features that do not matter? AUC of σ for known nuisance, for every objective.

python benchmarks/nuisance.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import roc_auc_score

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.folder import describe_environment
from pinoise.training.run import fit

SEEDS = (0, 1, 2)
SHARED: dict[str, Any] = {"encoder": {"hidden": 512}, "training": {"epochs": 100, "information_draws": 0}}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "supported (the default)": {},
    "supported, flat start, no prior": {
        "objective": {"name": "supported", "weight": 0.0},
        "noise": {"initial_scale": 0.5},
    },
    "the same, independent noise": {
        "objective": {"name": "supported", "weight": 0.0},
        "noise": {"initial_scale": 0.5, "covariance": "diagonal"},
    },
    "paper": {"objective": "paper", "method": {"temperature": 0.1}, "noise": {"generator": {"hidden": 512}}},
    "adversarial": {"objective": "adversarial", "noise": {"generator": {"hidden": 512}}},
    "information": {"objective": "information", "noise": {"generator": {"hidden": 512}}},
}


class NuisanceProblem(NamedTuple):
    """Samples with three kinds of features: signal from a hidden state, noise, and constants."""

    x: npt.NDArray[np.float64]  # (rows, features)
    y: npt.NDArray[np.int64]  # (rows,): the class of the hidden state
    nuisance: npt.NDArray[np.bool_]  # (features,)
    live: npt.NDArray[np.bool_]  # (features,): False for constants


def nuisance_problem(
    *, rows: int = 1500, signal: int = 40, nuisance: int = 40, classes: int = 6, latent: int = 5, seed: int = 0
) -> NuisanceProblem:
    """Draw samples whose signal features come from a hidden state with few dimensions and classes.

    Signal features are sums of the state's coordinates, half of them bent by tanh, with a little noise each. Nuisance
    features are independent noise of 1 to 3 times the signal's scale. Constants make up a tenth of all features.

    >>> problem = nuisance_problem(rows=50)
    >>> problem.x.shape, int(problem.nuisance.sum()), int((~problem.live).sum())
    ((50, 89), 40, 9)
    """
    random = np.random.default_rng(seed)
    constants = round((signal + nuisance) / 9)
    y = random.integers(classes, size=rows)
    state = 2 * random.normal(size=(classes, latent))[y] + random.normal(size=(rows, latent))
    informative = state @ random.normal(size=(latent, signal)) / np.sqrt(latent)
    informative[:, ::2] = np.tanh(informative[:, ::2])
    informative += 0.3 * informative.std(axis=0) * random.normal(size=(rows, signal))
    size = informative.std() * random.uniform(1, 3, size=nuisance)
    x = np.concatenate(
        [informative, size * random.normal(size=(rows, nuisance)), np.tile(random.normal(size=constants), (rows, 1))],
        axis=1,
    )
    kind = np.repeat([0, 1, 2], [signal, nuisance, constants])
    order = random.permutation(len(kind))
    return NuisanceProblem(x[:, order], y, kind[order] == 1, kind[order] != 2)


def nuisance_auc(sigma: npt.NDArray[np.floating], problem: NuisanceProblem) -> float:
    """Return the AUC of σ (features,) in telling nuisance from signal: 1 if all nuisance has more noise, 0.5 by chance.

    >>> problem = nuisance_problem(rows=50)
    >>> nuisance_auc(problem.nuisance.astype(float), problem)
    1.0
    """
    return float(roc_auc_score(problem.nuisance[problem.live], sigma[problem.live]))


def measure(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train on one draw of the problem and return the AUC at the start and at the end."""
    problem = nuisance_problem(seed=seed)
    standardizer = Standardizer.fit(problem.x)
    rows = make_rows(problem.x, standardizer)
    training = {**SHARED["training"], "seed": seed}
    fitted = fit(parse_settings({**SHARED, **settings, "training": training}), standardizer, rows, reporter=Quiet())
    assert fitted.model.noise is not None  # every objective here has noise
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
