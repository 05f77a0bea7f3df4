"""All scores of one embedding."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pinoise.choices import SCORES
from pinoise.data.dataset import Array, is_measured
from pinoise.errors import UserError
from pinoise.evaluation.knn import knn_accuracy
from pinoise.evaluation.logistic import few_label_accuracies, logistic_regression, standardised
from pinoise.evaluation.ridge import few_value_scores, knn_r_squared, ridge_r_squared
from pinoise.evaluation.softmax import softmax_regression

SEEDED = ("sr", "few", "few_standardised")  # those that a seed changes for one and the same embedding


@dataclass(frozen=True)
class Scores:
    """Test accuracies from 0 to 1: the paper's two, and what says more to a user; None where it was not computed.

    Where labels are a measurement, every score is an R², of at most 1.

    >>> Scores(knn=0.9, sr=0.8, lr=0.85, few_draws=(0.5, 0.75)).as_dict()
    {'knn': 0.9, 'sr': 0.8, 'lr': 0.85, 'few': 0.625, 'few_std': 0.125, 'few_standardised': None, \
'few_draws': [0.5, 0.75]}
    """

    knn: float | None = None  # k nearest neighbours
    sr: float | None = None  # softmax regression after a fixed number of epochs
    lr: float | None = None  # converged logistic regression, or ridge regression of a measurement
    few_draws: tuple[float, ...] = ()  # the same with few labels, for every draw of them
    few_standardised_draws: tuple[float, ...] = ()  # the same after dividing columns by their standard deviation

    @property
    def few(self) -> float | None:
        """The mean over draws of the few labels."""
        return float(np.mean(self.few_draws)) if self.few_draws else None

    @property
    def few_std(self) -> float | None:
        """The standard deviation over those draws."""
        return float(np.std(self.few_draws)) if self.few_draws else None

    @property
    def few_standardised(self) -> float | None:
        """The mean over draws of the few labels, with standardised columns."""
        return float(np.mean(self.few_standardised_draws)) if self.few_standardised_draws else None

    def as_dict(self) -> dict[str, float | list[float] | None]:
        """Return the scores by name, ready for JSON."""
        values = {name: getattr(self, name) for name in ("knn", "sr", "lr", "few", "few_std", "few_standardised")}
        return {**values, "few_draws": list(self.few_draws)}


def evaluate(
    train: Array,
    y_train: Array | None,
    test: Array,
    y_test: Array | None,
    *,
    seed: int = 0,
    scores: Collection[str] = SCORES,
) -> Scores:
    """Return scores of an embedding as it is; ``seed`` sets softmax regression's start and the few-label draws.

    Args:
        train: the embedding of the training rows.
        y_train: their labels: class numbers, or real numbers of a measurement.
        test: the embedding of the test rows.
        y_test: their labels.
        seed: see above.
        scores: which to compute; the others are None.

    >>> import numpy as np
    >>> x, y = np.repeat(np.eye(3), 20, axis=0), np.repeat([0, 1, 2], 20)
    >>> evaluate(x, y, x, y, scores=["knn"]).as_dict()["knn"]
    1.0
    """
    if y_train is None or y_test is None:
        part = "training" if y_train is None else "test"
        raise UserError(f"the {part} rows have no labels: scores need a label for every row.")
    how: dict[str, Callable[..., Any]] = {
        "knn": knn_accuracy,
        "sr": partial(softmax_regression, seed=seed),
        "lr": logistic_regression,
        "few": partial(few_label_accuracies, seed=seed),
        "few_standardised": partial(few_label_accuracies, seed=seed, classifier=standardised),
    }
    if is_measured(y_train):
        how = {"knn": knn_r_squared, "lr": ridge_r_squared, "few": partial(few_value_scores, seed=seed)}
    parts = (train, y_train, test, y_test)
    found = {name: compute(*parts) for name, compute in how.items() if name in scores}
    return Scores(**{f"{name}_draws" if name.startswith("few") else name: value for name, value in found.items()})
