"""All scores of one embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pinoise.errors import UserError
from pinoise.evaluation.knn import knn_accuracy
from pinoise.evaluation.logistic import few_label_accuracies, logistic_regression
from pinoise.evaluation.softmax import softmax_regression


@dataclass(frozen=True)
class Scores:
    """Test accuracies from 0 to 1: the paper's two, and two that say more to a user.

    >>> Scores(knn=0.9, sr=0.8, lr=0.85, few_draws=(0.5, 0.75)).as_dict()
    {'knn': 0.9, 'sr': 0.8, 'lr': 0.85, 'few': 0.625, 'few_std': 0.125}
    """

    knn: float  # k nearest neighbours
    sr: float  # softmax regression after a fixed number of epochs
    lr: float  # converged logistic regression
    few_draws: tuple[float, ...]  # logistic regression with few labels per class, for every draw of them

    @property
    def few(self) -> float:
        """The mean over draws of the few labels."""
        return float(np.mean(self.few_draws))

    @property
    def few_std(self) -> float:
        """The standard deviation over those draws."""
        return float(np.std(self.few_draws))

    def as_dict(self) -> dict[str, float]:
        """Return the scores by name, ready for JSON."""
        return {"knn": self.knn, "sr": self.sr, "lr": self.lr, "few": self.few, "few_std": self.few_std}


def evaluate(
    train: np.ndarray,
    y_train: np.ndarray | None,
    test: np.ndarray,
    y_test: np.ndarray | None,
    *,
    seed: int = 0,
) -> Scores:
    """Return every score of an embedding; ``seed`` sets softmax regression's start and the few-label draws.

    >>> import numpy as np
    >>> x, y = np.repeat(np.eye(3), 20, axis=0), np.repeat([0, 1, 2], 20)
    >>> evaluate(x, y, x, y).knn
    1.0
    """
    if y_train is None or y_test is None:
        part = "training" if y_train is None else "test"
        raise UserError(f"the {part} rows have no labels: scores need a label for every row.")
    return Scores(
        knn=knn_accuracy(train, y_train, test, y_test),
        sr=softmax_regression(train, y_train, test, y_test, seed=seed),
        lr=logistic_regression(train, y_train, test, y_test),
        few_draws=few_label_accuracies(train, y_train, test, y_test, seed=seed),
    )
