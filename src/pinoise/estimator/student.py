"""A student of the vote: logistic regression that also learns from unlabelled rows, by the classes that the vote gives.

The vote itself sees labelled rows alone. Its most confident half of the unlabelled rows shows the student where classes
lie beyond them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from pinoise.estimator.voting import (
    LEAST_WEIGHT,
    Candidate,
    Classes,
    Floats,
    Vote,
    Voter,
    VoterChoice,
    choose,
    families,
    fit_model,
    least_loss,
)

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


@dataclass(frozen=True)
class Taught:
    """The vote and its student, which is None where every row has a label."""

    vote: Vote
    student: Student | None

    def probabilities(self, Z: Floats) -> Floats:
        """Return p(class) of every row of an embedding, (n, K)."""
        p = self.vote.probabilities(Z)
        if self.student is None:
            return p
        return (1 - self.student.weight) * p + self.student.weight * self.student.probabilities(Z)

    @property
    def shares(self) -> list[Voter]:
        """The voters with their shares of the result, which add up to 1 with that of the student."""
        rest = 1 - (0.0 if self.student is None else self.student.weight)
        return [voter._replace(weight=rest * voter.weight) for voter in self.vote.voters]

    def lines(self) -> list[str]:
        """Return a line for every voter, and one for the student."""
        student = [] if self.student is None else [f"{self.student.weight:.2f} a student of the vote"]
        return [*map(str, self.shares), *student]

    def as_dict(self) -> dict[str, Any]:
        """Return the voters and the student's weight as plain values for JSON; a score that does not exist is None."""
        chosen = []
        for voter in self.shares:
            scores = {key: getattr(voter, key) for key in ("weight", "accuracy", "log_loss")}
            known = {key: None if np.isnan(value) else value for key, value in scores.items()}
            chosen.append({**voter.candidate._asdict(), **known})
        return {"chosen": chosen, "student_weight": 0.0 if self.student is None else self.student.weight}


def spaced_rows(rows: Classes, most: int) -> Classes:
    """Return at most ``most`` of some rows, evenly spaced.

    >>> spaced_rows(np.arange(10), 4).tolist(), spaced_rows(np.arange(3), 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


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


def fit_taught(Z: Floats, y: Classes, unlabelled: Floats, *, raw: int, seed: int) -> tuple[VoterChoice, Taught]:
    """Choose the voters by the labelled rows, fit them, and teach their student.

    Args:
        Z: the embedding of the labelled rows.
        y: their class numbers.
        unlabelled: the embedding of the others, or of some: see ``MOST_UNLABELLED``.
        raw: how many columns of Z, the first ones, are the sample itself.
        seed: of folds and trees.

    >>> Z, y = np.array([[0.0, 0.0], [0.0, 0.1], [4.0, 4.0], [4.0, 4.1]]), np.array([0, 0, 1, 1])
    >>> unlabelled = np.array([[0.0, 0.2], [4.0, 4.2], [2.0, 2.1], [2.1, 2.0]])
    >>> _, taught = fit_taught(Z, y, unlabelled, raw=1, seed=0)
    >>> taught.probabilities(np.array([[-1.0, 0.0], [5.0, 4.0]])).argmax(axis=1).tolist()
    [0, 1]
    """
    choice = choose(Z, y, raw=raw, seed=seed)
    vote = Vote(choice.voters, Z, y, raw=raw, seed=seed)
    whole = least_loss(families(raw)[0], choice.scores)
    return choice, Taught(vote, teach(vote, whole, Z, y, unlabelled, seed=seed))
