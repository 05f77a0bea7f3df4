"""The classifier of a run folder: its labelled rows, the choice and the student's coefficients are stored.

The voters are fitted again to predict. So a folder holds no pickle, and reading it runs no code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from torch import Tensor

from pinoise.data.dataset import Labels, Part
from pinoise.data.source import find_source
from pinoise.data.table.cells import find_column
from pinoise.data.table.labels import LabelEncoding, learn_labels, typed
from pinoise.errors import UserError
from pinoise.estimator.classifier import UNLABELLED
from pinoise.estimator.student import Student, Taught, embedded_parts, fit_taught
from pinoise.estimator.voting import Candidate, Classes, Features, Floats, Model, Vote, Voter, families
from pinoise.evaluation import embed
from pinoise.files import written_file
from pinoise.networks import read_stored, write_tensors
from pinoise.training.load import Run

CLASSIFIER = "classifier.safetensors"
_SHOWN = 20  # classes in a note


@dataclass(frozen=True)
class Target:
    """The target column of a table: which rows have a label, and their class numbers."""

    column: str
    total: int  # rows of the table
    rows: Labels  # the numbers of the labelled rows
    numbers: Classes
    labels: LabelEncoding

    def as_dict(self) -> dict[str, Any]:
        """Return what was found, as plain values for JSON."""
        counts = np.bincount(self.numbers, minlength=len(self.labels.names)).tolist()
        classes = dict(zip(self.labels.names, counts, strict=True))
        return {"column": self.column, "rows": self.total, "labelled": len(self.rows), "classes": classes}

    @property
    def notes(self) -> list[str]:
        """What was found, in words, so that a mark for "unknown" does not become a class unseen."""
        found = [f"{name!r} {count}" for name, count in self.as_dict()["classes"].items()]
        shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
        notes = [f"{self.column}: {len(self.rows)} of {self.total} rows have a label: {shown}"]
        if str(UNLABELLED) in self.labels.names:
            notes.append(f"{self.column}: {UNLABELLED} is taken for a class: leave cells without a label empty")
        return notes

    def within(self, part: Part) -> Target:
        """Return the target of a part of the table, with row numbers within the part."""
        if part.origin is None:
            return self
        _, inside, own = np.intersect1d(np.asarray(part.origin.rows), self.rows, return_indices=True)
        order = np.argsort(inside)
        return replace(self, rows=inside[order], numbers=self.numbers[own[order]])


def read_target(source: str, column: str, *, na: tuple[str, ...] = ()) -> Target:
    """Read the labels in a column of a table; an empty cell, or one of ``na``, is a row without a label."""
    found = find_source(source)
    if found.kind != "table":
        raise UserError(f"--target names a column of a table (.csv, .parquet), and {source} is none.")
    table, where = found.table().with_missing(na), f"{source}, target column {column!r}"
    name = find_column(column, table.names, where=source)
    cells = pa.concat_tables([batch for _, batch in table.batches([name])]).column(0).combine_chunks()
    cells = cells if table.kinds else typed(cells)
    given = pc.invert(pc.is_null(cells, nan_is_null=pa.types.is_floating(cells.type)))
    known = cells.filter(given)
    if len(known) == 0:
        raise UserError(f"{where} is empty: a classifier needs some labels.")
    labels = learn_labels(known, where=where)
    rows = np.flatnonzero(given.to_numpy(zero_copy_only=False))
    return Target(column, len(cells), rows, labels.encode(known, where=where), labels)


class _Voter(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    features: Features
    model: Model
    strength: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    weight: Annotated[float, Field(gt=0, le=1)]
    accuracy: float
    log_loss: float


class _Header(BaseModel):
    """Everything but tensors in the file of a classifier."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal[1]
    weights: str  # the checksum of the embedding that it was fitted on
    classes: Annotated[list[str], Field(min_length=2)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    voters: Annotated[list[_Voter], Field(min_length=1, max_length=64)]
    student_weight: Annotated[float, Field(ge=0, le=0.5)]  # 0: there is none

    @field_validator("classes")
    @classmethod
    def _differ(cls, classes: list[str]) -> list[str]:
        if len(set(classes)) < len(classes):
            raise ValueError
        return classes

    @field_validator("voters")
    @classmethod
    def _share(cls, voters: list[_Voter]) -> list[_Voter]:
        if abs(sum(voter.weight for voter in voters) - 1) > 1e-6:
            raise ValueError
        return voters


@dataclass(frozen=True)
class RunClassifier:
    """The classes of a run's target, and the vote on them with its student."""

    run: Run
    classes: tuple[str, ...]
    taught: Taught

    def probabilities(self, part: Part, *, where: str) -> Floats:
        """Return p(class) of every row, (n, K)."""
        return self.taught.probabilities(_embedded(self.run, part, where=where))


def classifier_of(run: Run) -> RunClassifier:
    """Return the classifier of a run: the stored one, or that of an unfinished run, which is fitted now and not stored.

    Its voters are chosen and fitted by the labels in the run's own data.
    """
    target = run.settings.data.target
    if run.finished or target is None:
        return read_run_classifier(run)
    return fit_run_classifier(run, read_target(run.settings.data.source, target, na=run.settings.data.na), store=False)


def fit_run_classifier(run: Run, target: Target, *, store: bool = True) -> RunClassifier:
    """Fit a classifier on the labelled rows of a run, and store it in the run's folder, if ``store``."""
    part = run.own_data().train
    inside = target.within(part)
    present, numbers = np.unique(inside.numbers, return_inverse=True)
    if len(present) < 2:
        raise UserError(f"the rows of {run.path} have labels of {len(present)} class, but a classifier needs two.")
    source, raw, seed = run.settings.data.source, _raw_columns(run), run.settings.training.seed
    Z, unlabelled = embedded_parts(
        lambda rows: _embedded(run, part.take(rows), where=source), inside.rows, total=len(part)
    )
    _, taught = fit_taught(Z, numbers, unlabelled, raw=raw, seed=seed)
    classes = tuple(target.labels.names[number] for number in present)
    if store:
        _write_classifier(run, classes, taught, Z, numbers, seed=seed)
    return RunClassifier(run, classes, taught)


def _write_classifier(
    run: Run, classes: Sequence[str], taught: Taught, Z: Floats, numbers: Classes, *, seed: int
) -> None:
    header = _Header(
        format=1,
        weights=run.weights,
        classes=list(classes),
        seed=seed,
        voters=[
            _Voter(
                **voter.candidate._asdict(),
                weight=voter.weight,
                accuracy=voter.accuracy,
                log_loss=voter.log_loss,
            )
            for voter in taught.vote.voters
        ],
        student_weight=0.0 if taught.student is None else taught.student.weight,
    )
    tensors = {"embedding": torch.from_numpy(Z).float(), "numbers": torch.from_numpy(numbers)}
    if taught.student is not None:
        tensors["coefficients"] = torch.from_numpy(taught.student.coefficients)
        tensors["intercepts"] = torch.from_numpy(taught.student.intercepts)
    write_tensors(run.path / CLASSIFIER, tensors, metadata=header.model_dump())


def read_run_classifier(run: Run) -> RunClassifier:
    """Read the classifier of a run, and fit its models again."""
    path = run.path / CLASSIFIER
    if not path.exists():
        raise UserError(f"{run.path} has no classifier: train with --target COLUMN.")
    tensors, values = read_stored(path)
    try:
        header = _Header.model_validate(values)
    except ValidationError as error:
        entry = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{path} has no sound entry {entry!r} in its header: the file is damaged.") from None
    raw, learned = _raw_columns(run), cast(int, run.embedding.encoder.out_features)
    has_student = header.student_weight > 0
    if not _fits(tensors, width=raw + learned, n_classes=len(header.classes), has_student=has_student):
        raise UserError(f"{path} does not fit the run beside it: the file is damaged.")
    if header.weights != run.weights:
        raise UserError(
            f"{path} was fitted on other weights than the run now has: fit it again with 'pinoise train --resume "
            f"{run.path}'."
        )
    voters = [
        Voter(Candidate(each.features, each.model, each.strength), each.weight, each.accuracy, each.log_loss)
        for each in header.voters
    ]
    known = {candidate for family in families(raw) for candidate in family}
    for voter in voters:
        if voter.candidate not in known:
            raise UserError(f"{path} votes by {voter.candidate}, which no run does: the file is damaged.")
    Z, numbers = tensors["embedding"].double().numpy(), tensors["numbers"].numpy()
    student = None
    if has_student:
        student = Student(tensors["coefficients"].numpy(), tensors["intercepts"].numpy(), header.student_weight)
    vote = Vote(voters, Z, numbers, raw=raw, seed=header.seed)
    return RunClassifier(run, tuple(header.classes), Taught(vote, student))


def write_predictions(path: Path, classes: Sequence[str], probabilities: Floats) -> None:
    """Write the most probable ``class`` of every row, and a column ``p=class`` for each, complete or not at all."""
    from pyarrow import csv, parquet

    names = pa.array(classes, pa.string())
    columns = {"class": names.take(pa.array(probabilities.argmax(axis=1)))}
    columns |= {f"p={name}": pa.array(probabilities[:, i]) for i, name in enumerate(classes)}
    write = csv.write_csv if path.suffix.lower() == ".csv" else parquet.write_table
    with written_file(path) as file:
        write(pa.table(columns), file)


def _fits(tensors: dict[str, Tensor], *, width: int, n_classes: int, has_student: bool) -> bool:
    """Whether the stored rows have the run's width and a label of every class, and the student's shapes are theirs."""
    rows = len(tensors["numbers"]) if "numbers" in tensors and tensors["numbers"].ndim == 1 else 0
    expected: dict[str, tuple[torch.dtype, tuple[int, ...]]]
    expected = {"embedding": (torch.float32, (rows, width)), "numbers": (torch.int64, (rows,))}
    if has_student:
        expected["coefficients"] = (torch.float64, (n_classes, width))
        expected["intercepts"] = (torch.float64, (n_classes,))
    if {name: (each.dtype, tuple(each.shape)) for name, each in tensors.items()} != expected:
        return False
    finite = all(bool(torch.isfinite(each).all()) for each in tensors.values())
    return finite and tensors["numbers"].unique().tolist() == list(range(n_classes))


def _raw_columns(run: Run) -> int:
    return run.standardizer.mean.size if run.embedding.name == "joined" else 0


def _embedded(run: Run, part: Part, *, where: str) -> Floats:
    return embed(run.embedding, run.rows(part.x, where=where)).astype(np.float64)
