"""The classifier for few labels: a vote with its student, and its file, which holds no pickle and runs no code.

The file has the labelled rows, how the candidates did and the student's coefficients. The voters are fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from pinoise.errors import UserError
from pinoise.evaluation.student import Student, teach
from pinoise.evaluation.voting import Candidate, Classes, Floats, Vote, Voter, choose, families, least_loss
from pinoise.networks import read_stored, write_tensors

Label = str | int | float | bool


@dataclass(frozen=True)
class FewLabelClassifier:
    """The vote on classes and its student, which is None where every row has a label.

    >>> Z, y = np.array([[0.0, 0.0], [0.0, 0.1], [4.0, 4.0], [4.0, 4.1]]), np.array([0, 0, 1, 1])
    >>> unlabelled = np.array([[0.0, 0.2], [4.0, 4.2], [2.0, 2.1], [2.1, 2.0]])
    >>> classifier = FewLabelClassifier.fit(Z, y, unlabelled, classes=("no", "yes"), raw=1, seed=0)
    >>> classifier.probabilities(np.array([[-1.0, 0.0], [5.0, 4.0]])).argmax(axis=1).tolist()
    [0, 1]
    """

    classes: tuple[Label, ...]
    vote: Vote
    student: Student | None

    @classmethod
    def fit(cls, Z: Floats, y: Classes, unlabelled: Floats, *, classes: Sequence[Label], raw: int, seed: int) -> Self:
        """Choose the voters by the labelled rows, fit them, and teach their student.

        Args:
            Z: the embedding of the labelled rows.
            y: their class numbers.
            unlabelled: the embedding of the others, or of some: see ``MOST_UNLABELLED``.
            classes: the name of every class number.
            raw: how many columns of Z, the first ones, are the sample itself.
            seed: of folds and trees.
        """
        vote = Vote(choose(Z, y, raw=raw, seed=seed), Z, y, raw=raw, seed=seed)
        whole = least_loss(vote.candidates[: len(families(raw)[0])]).candidate
        return cls(tuple(classes), vote, teach(vote, whole, Z, y, unlabelled, seed=seed))

    @property
    def student_weight(self) -> float:
        """The student's share of the result."""
        return 0.0 if self.student is None else self.student.weight

    def probabilities(self, Z: Floats) -> Floats:
        """Return p(class) of every row of an embedding, (n, K)."""
        p = self.vote.probabilities(Z)
        if self.student is None:
            return p
        return (1 - self.student.weight) * p + self.student.weight * self.student.probabilities(Z)

    @property
    def shares(self) -> list[Voter]:
        """The voters with their shares of the result, which add up to 1 with that of the student."""
        return [voter._replace(weight=(1 - self.student_weight) * voter.weight) for voter in self.vote.voters]

    def lines(self) -> list[str]:
        """Return a line for every voter, and one for the student."""
        student = [] if self.student is None else [f"{self.student.weight:.2f} a student of the vote"]
        return [*map(str, self.shares), *student]

    def as_dict(self) -> dict[str, Any]:
        """Return the voters and the student's weight as plain values for JSON; a score that does not exist is nan."""
        return {"chosen": list(map(_flat, self.shares)), "student_weight": self.student_weight}

    def table(self) -> dict[str, list[Any]]:
        """Return the columns of a table with a line for each candidate; the weight of one that does not vote is 0."""
        lines = list(map(_flat, self.vote.candidates))
        return {column: [line[column] for line in lines] for column in lines[0]}

    def write(self, path: Path, *, weights: str) -> None:
        """Write the file. ``weights`` is the checksum of the embedding."""
        if strange := next((label for label in self.classes if not isinstance(label, Label)), None):
            raise UserError(f"the class {strange!r} is no text, number or truth value, so a file cannot hold it.")
        candidates = [(*voter.candidate, *voter[1:]) for voter in self.vote.candidates]
        header = {"weights": weights, "classes": self.classes, "seed": self.vote.seed, "candidates": candidates}
        arrays = {"embedding": self.vote.Z, "numbers": self.vote.y}
        if self.student is not None:
            arrays |= {"coefficients": self.student.coefficients, "intercepts": self.student.intercepts}
        tensors = {name: torch.from_numpy(np.asarray(values)) for name, values in arrays.items()}
        write_tensors(path, tensors, metadata={**header, "student_weight": self.student_weight})

    @classmethod
    def read(cls, path: Path, *, raw: int, weights: str) -> Self:
        """Read the file, and fit the voters again.

        Args:
            path: the file.
            raw: how many columns of the embedding, the first ones, are the sample itself.
            weights: the checksum of the embedding.
        """
        tensors, header = read_stored(path)
        again = f"fit it again with 'pinoise train --resume {path.parent}'."
        if header.get("weights") != weights:
            raise UserError(f"{path} was fitted on other weights than the run now has: {again}")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        try:
            candidates = [Voter(Candidate(*line[:3]), *line[3:]) for line in header["candidates"]]
            vote = Vote(candidates, arrays["embedding"], arrays["numbers"], raw=raw, seed=header["seed"])
            student = None
            if "coefficients" in arrays:
                student = Student(arrays["coefficients"], arrays["intercepts"], header["student_weight"])
            return cls(tuple(header["classes"]), vote, student)
        except (LookupError, TypeError, ValueError) as error:
            raise UserError(f"{path} does not hold a classifier of this version ({error}): {again}") from None


def _flat(voter: Voter) -> dict[str, Any]:
    return {**voter.candidate._asdict(), **dict(zip(Voter._fields[1:], voter[1:], strict=True))}
