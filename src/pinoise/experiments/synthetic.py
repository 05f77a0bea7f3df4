"""Data whose nuisance is known, to ask learned noise whether it found it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score


class NuisanceProblem(NamedTuple):
    """Samples of which some features tell about a hidden state, some are noise and some are constant."""

    x: npt.NDArray[np.float64]  # (rows, features)
    y: npt.NDArray[np.int64]  # (rows,): the class of the hidden state
    nuisance: npt.NDArray[np.bool_]  # (features,)
    live: npt.NDArray[np.bool_]  # (features,): False for constants


def nuisance_problem(
    *, rows: int = 1500, signal: int = 40, nuisance: int = 40, classes: int = 6, latent: int = 5, seed: int = 0
) -> NuisanceProblem:
    """Draw samples whose signal features come from a hidden state of few dimensions and classes.

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
    """Return how well the size of noise (features,) tells nuisance from signal: 1 if all of it has more, .5 by chance.

    >>> problem = nuisance_problem(rows=50)
    >>> nuisance_auc(problem.nuisance.astype(float), problem)
    1.0
    """
    return float(roc_auc_score(problem.nuisance[problem.live], sigma[problem.live]))
