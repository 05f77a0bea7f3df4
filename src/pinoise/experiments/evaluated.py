"""What ``pinoise evaluate`` finds out about a run, and keeps in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pinoise.data.moments import HEAVY_TAILS
from pinoise.data.options import AS_TRAINED, LaterOptions
from pinoise.data.source import is_name
from pinoise.errors import UserError
from pinoise.evaluation.logistic import LABELS_PER_CLASS
from pinoise.evaluation.ridge import KNOWN_VALUES
from pinoise.evaluation.verdict import Verdict, judge, paired_gap
from pinoise.experiments.information import information_of_run
from pinoise.experiments.scoring import agreements, score_run
from pinoise.experiments.sources import fewer_to_score, is_scorable, open_scored, sample_rows
from pinoise.files import WriteError, expanded, read_json, write_json
from pinoise.model import Model

FILE = "evaluation.json"

INFORMATION = {"task_entropy": "H(T)", "conditional_entropy": "H(T|E)", "exact": "exact MI", "plug_in": "plug-in MI"}

NO_LABELS = (
    "Without labels, nobody can say whether this embedding is better than raw features: neighbours, information and "
    "health do not tell accuracy."
)


class _Kept(BaseModel):
    """What is read from a file again, as it was written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Found(_Kept):
    """The scores of one embedding: those of ``evaluation.Scores``."""

    knn: float
    sr: float | None
    lr: float
    few: float
    few_std: float
    few_standardised: float | None
    few_draws: list[float]


class StoredEstimate(_Kept):
    """An estimate with its standard error."""

    value: float
    error: float


class StoredInformation(_Kept):
    """What a view tells about the task: see ``information.InformationEstimate``."""

    task_entropy: StoredEstimate
    conditional_entropy: StoredEstimate
    exact: StoredEstimate
    plug_in: StoredEstimate
    samples: int
    draws: int

    @property
    def cells(self) -> list[str]:
        """The estimates as a table shows them under the titles of ``INFORMATION``."""
        found: list[StoredEstimate] = [getattr(self, name) for name in INFORMATION]
        return [f"{each.value:.3f} ± {each.error:.3f}" for each in found]


class Evaluation(_Kept):
    """What is known about a run's embedding, as in ``evaluation.json``. Without labels there are no scores."""

    data: str
    state: dict[str, Any]  # of the run: see ``Run.is_current``
    seed: int
    rows: int | None  # the most of each part that were asked for
    sizes: tuple[int, int]  # training and test rows
    measured: bool  # whether the scores are R² of a measurement
    scores: dict[str, Found]
    agreement: dict[str, float]  # of neighbours with those among raw features, by embedding
    information: dict[str, StoredInformation] = {}

    @model_validator(mode="after")
    def _can_be_judged(self) -> Evaluation:
        softmax = self.measured or all(found.sr is not None for found in self.scores.values())
        if set(self.agreement) not in (set(), {"learned", "untrained", "chance"}) or not softmax:
            raise ValueError
        if self.scores:
            raw, learned = self.scores["raw"], self.scores["learned"]
            paired_gap(learned.few_draws, raw.few_draws)
        return self

    @property
    def few(self) -> str:
        """How many labels the few-label score has, in words."""
        return f"{KNOWN_VALUES} known values" if self.measured else f"{LABELS_PER_CLASS} labels per class"

    @property
    def verdict(self) -> Verdict:
        """Whether the embedding is better than raw features."""
        if not self.scores:
            return Verdict("unknown", NO_LABELS)
        learned, raw = self.scores["learned"].few_draws, self.scores["raw"].few_draws
        return judge(learned, raw, few=self.few, measured=self.measured)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without information that was not measured."""
        values = self.model_dump()
        values["verdict"] = self.verdict._asdict()
        return values if self.information else {key: value for key, value in values.items() if key != "information"}


def evaluate_run(
    run: Model,
    source: str | None = None,
    later: LaterOptions = AS_TRAINED,
    *,
    rows: int | None = None,
    seed: int = 0,
    draws: int | None = None,
    progress: bool = False,
    note: Callable[[str], None] = lambda _: None,
    processes: int = 1,
) -> Evaluation:
    """Score a run's embedding beside raw features and an untrained encoder, and measure what needs no labels.

    Args:
        run: a run.
        source: other data than the run's own.
        later: how it is read, where that differs from training.
        rows: the most training and test rows to look at, drawn at random; None takes all, unless they are too many to
            hold in memory (``fewer_to_score``).
        seed: of softmax regression and the draws of few labels.
        draws: of every view, to measure its information as well; None leaves what was measured before.
        progress: whether downloads show a bar.
        note: called with sentences about the data.
        processes: how many share the rows to embed.
    """
    data = open_scored(run, source, later, progress=progress)
    data = fewer_to_score(data) if rows is None else sample_rows(data, train=rows, test=rows)
    on_units = [] if run.standardizer.tails is None else [HEAVY_TAILS]
    for sentence in run.new_notes([*data.notes, *on_units], source):
        note(sentence)
    scores = score_run(run, data, seed=seed, processes=processes) if is_scorable(data) else {}
    if draws is None:
        information = _measured_before(run)
    else:
        measured = information_of_run(run, draws=draws, progress=progress)
        information = {name: StoredInformation.model_validate(found.as_dict()) for name, found in measured.items()}
    return Evaluation(
        data=shown_source(source or run.settings.data.source),
        state=run.state,
        seed=seed,
        rows=rows,
        sizes=(len(data.train), 0 if data.test is None else len(data.test)),
        measured=data.measures,
        scores={name: Found.model_validate(value.as_dict()) for name, value in scores.items()},
        agreement=agreements(run, data),
        information=information,
    )


def store_evaluation(run: Model, found: Evaluation, *, note: Callable[[str], None]) -> None:
    """Write what was found into the run's folder; a note says if that cannot be."""
    try:
        write_json(run.path / FILE, found.as_dict())
    except WriteError as error:
        note(f"the scores are not stored: {error}")


def read_evaluation(run: Model) -> Evaluation | None:
    """Return what was found about a run as it is now; None if it was not evaluated, or only in an earlier state."""
    path = run.path / FILE
    if not path.exists():
        return None
    values = read_json(path)
    try:
        found = Evaluation.model_validate_json(json.dumps({key: values[key] for key in values if key != "verdict"}))
        return found if run.is_current(values) else None
    except (ValidationError, KeyError, TypeError, ValueError, UserError):
        raise UserError(
            f"{path} is not what 'pinoise evaluate' writes: evaluate the run again, or delete it."
        ) from None


def shown_source(source: str) -> str:
    """Return a source without the folders above it, which are nobody's business.

    >>> shown_source("digits"), shown_source("/home/me/houses.csv")
    ('digits', 'houses.csv')
    """
    return source if is_name(source) else expanded(source).name


def _measured_before(run: Model) -> dict[str, StoredInformation]:
    """Return the information that was measured of the run in its present state, if any."""
    try:
        before = read_evaluation(run)
    except UserError:  # it is replaced now
        return {}
    return {} if before is None else before.information
