"""A student of the vote: logistic regression that also learns from unlabelled rows, by the classes that the vote gives.

The vote itself sees labelled rows alone. Its most confident half of the unlabelled rows shows the student where classes
lie beyond them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from pinoise.evaluation.voting import LEAST_WEIGHT, Candidate, Classes, Floats, Vote, fit_model

MOST_UNLABELLED = 2000  # rows that the vote labels
TAUGHT_SHARE = 0.5  # of them, the most confident ones; chosen on validation rows, where ¼ to ¾ do nearly the same


@dataclass(frozen=True)
class Student:
    """Logistic regression on the whole embedding; its weight is beside the vote, whose own is the rest of 1.

    >>> student = Student(np.array([[0.0], [2.0]]), np.zeros(2), weight=0.5)
    >>> student.probabilities(np.array([[0.0], [3.0]])).round(3).tolist()
    [[0.5, 0.5], [0.002, 0.998]]
    """

    coefficients: Floats  # (K, d)
    intercepts: Floats  # (K,)
    weight: float

    def probabilities(self, Z: Floats) -> Floats:
        """Return p(class) of every row of an embedding, (n, K)."""
        return np.asarray(softmax(Z @ self.coefficients.T + self.intercepts, axis=1))


def spaced_rows(rows: Classes, most: int) -> Classes:
    """Return at most ``most`` of some rows, evenly spaced.

    >>> spaced_rows(np.arange(10), 4).tolist(), spaced_rows(np.arange(3), 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(np.int64)]


def embedded_parts(embed: Callable[[Classes], Floats], labelled: Classes, *, total: int) -> tuple[Floats, Floats]:
    """Return the embedding of the labelled rows, and of the others, at most ``MOST_UNLABELLED``.

    Args:
        embed: from row numbers to embeddings.
        labelled: the numbers of the labelled rows.
        total: how many rows there are.

    >>> [part.tolist() for part in embedded_parts(lambda rows: 2.0 * rows[:, None], np.array([1]), total=3)]
    [[[2.0]], [[0.0], [4.0]]]
    """
    Z = embed(labelled)
    others = spaced_rows(np.setdiff1d(np.arange(total), labelled), MOST_UNLABELLED)
    return Z, embed(others) if len(others) else Z[:0]


def most_confident(p: Floats, share: float) -> Classes:
    """Return the rows of largest probability, in that order.

    >>> most_confident(np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), 0.5).tolist()
    [1, 2]
    """
    return np.argsort(-p.max(axis=1), kind="stable")[: round(share * len(p))]


def student_weight(taught: int, labelled: int) -> float:
    """Return half the share of the student's rows that the vote has labelled.

    >>> student_weight(900, 100), student_weight(0, 100)
    (0.45, 0.0)
    """
    return 0.5 * taught / (taught + labelled)


def teach(vote: Vote, candidate: Candidate, Z: Floats, y: Classes, unlabelled: Floats, *, seed: int) -> Student | None:
    """Return the student of a vote, or None where too few rows are unlabelled to make a difference.

    Args:
        vote: fitted on the labelled rows.
        candidate: logistic regression on the whole embedding, with its strength.
        Z: the embedding of the labelled rows.
        y: their class numbers.
        unlabelled: the embedding of the others.
        seed: as in ``choose``.
    """
    weight = student_weight(round(TAUGHT_SHARE * len(unlabelled)), len(y))
    if weight < LEAST_WEIGHT:
        return None
    p = vote.probabilities(unlabelled)
    rows = most_confident(p, TAUGHT_SHARE)
    model = fit_model(candidate, np.vstack([Z, unlabelled[rows]]), np.append(y, p[rows].argmax(axis=1)), seed=seed)
    coefficients, intercepts = model.coef_, model.intercept_
    if len(coefficients) == 1:  # two classes: the logit of the second over the first
        coefficients, intercepts = np.vstack([0 * coefficients, coefficients]), np.append(0, intercepts)
    return Student(coefficients, intercepts, weight)
