"""The classifier for few labels: a vote with its student, and its file, which holds no pickle and runs no code.

The file has the labelled rows, how the candidates did and the student's coefficients. The voters are fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from pinoise.errors import UserError
from pinoise.evaluation.student import Student, teach
from pinoise.evaluation.voting import Candidate, Classes, Features, Floats, Model, Vote, Voter, choose, families
from pinoise.evaluation.voting import least_loss as of_least_loss
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
        whole = of_least_loss(vote.candidates[: len(families(raw)[0])]).candidate
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
        header = _Header(
            format=1,
            weights=weights,
            classes=list(self.classes),
            seed=self.vote.seed,
            voters=[_Line(**_flat(candidate)) for candidate in self.vote.candidates],
            student_weight=self.student_weight,
        )
        tensors = {"embedding": self.vote.Z, "numbers": self.vote.y}
        if self.student is not None:
            tensors |= {"coefficients": self.student.coefficients, "intercepts": self.student.intercepts}
        found = {name: torch.from_numpy(np.asarray(values)) for name, values in tensors.items()}
        write_tensors(path, found, metadata=header.model_dump())

    @classmethod
    def read(cls, path: Path, *, raw: int, learned: int, weights: str) -> Self:
        """Read the file, and fit the voters again.

        Args:
            path: the file.
            raw: how many columns of the embedding, the first ones, are the sample itself.
            learned: how many are learned.
            weights: the checksum of the embedding.
        """
        tensors, values = read_stored(path)
        try:
            header = _Header.model_validate(values)
        except ValidationError as error:
            entry = ".".join(map(str, error.errors()[0]["loc"]))
            raise UserError(f"{path} has no sound entry {entry!r} in its header: the file is damaged.") from None
        if not _fits(tensors, header, width=raw + learned):
            raise UserError(f"{path} does not fit the run beside it: the file is damaged.")
        if header.weights != weights:
            raise UserError(
                f"{path} was fitted on other weights than the run now has: fit it again with 'pinoise train --resume "
                f"{path.parent}'."
            )
        known = {candidate for family in families(raw) for candidate in family}
        candidates = [line.voter() for line in header.voters]
        if strange := next((each for each in candidates if each.candidate not in known), None):
            raise UserError(f"{path} votes by {strange.candidate}, which no run does: the file is damaged.")
        stored = {name: tensor.numpy() for name, tensor in tensors.items()}
        vote = Vote(candidates, stored["embedding"].astype(np.float64), stored["numbers"], raw=raw, seed=header.seed)
        has_student = header.student_weight > 0
        student = Student(stored["coefficients"], stored["intercepts"], header.student_weight) if has_student else None
        return cls(tuple(header.classes), vote, student)


def _flat(voter: Voter) -> dict[str, Any]:
    return {
        **voter.candidate._asdict(),
        "weight": voter.weight,
        "accuracy": voter.accuracy,
        "log_loss": voter.log_loss,
    }


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    features: Features
    model: Model
    strength: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    weight: Annotated[float, Field(ge=0, le=1)]
    accuracy: float
    log_loss: float

    def voter(self) -> Voter:
        candidate = Candidate(self.features, self.model, self.strength)
        return Voter(candidate, self.weight, self.accuracy, self.log_loss)


class _Header(BaseModel):
    """Everything but tensors in the file of a classifier."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal[1]
    weights: str  # the checksum of the embedding that it was fitted on
    classes: Annotated[list[Label], Field(min_length=2)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    voters: Annotated[list[_Line], Field(min_length=1, max_length=64)]
    student_weight: Annotated[float, Field(ge=0, le=0.5)]  # 0: there is none


def _fits(tensors: dict[str, Tensor], header: _Header, *, width: int) -> bool:
    """Whether the stored rows have the run's width and a label of every class, and the student's shapes are theirs."""
    numbers, classes = tensors.get("numbers", torch.empty(())), len(header.classes)
    expected = {"embedding": (numbers.numel(), width), "numbers": (numbers.numel(),)}
    if header.student_weight > 0:
        expected |= {"coefficients": (classes, width), "intercepts": (classes,)}
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != expected:
        return False
    kinds = {name: (torch.int64,) if name == "numbers" else (torch.float32, torch.float64) for name in tensors}
    sound = all(tensor.dtype in kinds[name] and bool(tensor.isfinite().all()) for name, tensor in tensors.items())
    shares, names = sum(voter.weight for voter in header.voters), set(map(str, header.classes))
    return (
        sound and numbers.unique().tolist() == list(range(classes)) and len(names) == classes and abs(shares - 1) < 1e-6
    )
