"""What the reader of a report wants to know first: is the embedding better than raw features, and how sure is that?"""

from __future__ import annotations

from typing import NamedTuple

from pinoise.evaluation.knn import AGREEING
from pinoise.evaluation.verdict import Outcome
from pinoise.experiments.evaluated import Evaluation
from pinoise.information import HealthFlag
from pinoise.training.load import Run


class Answer(NamedTuple):
    """The verdict, and what to bear in mind beside it."""

    outcome: Outcome
    sentence: str
    details: list[str]


def answer(run: Run, found: Evaluation | None, flags: list[HealthFlag]) -> Answer:
    """Return the verdict on a run, from what was found about it."""
    caveats = []
    if not run.finished:
        caveats.append(f"The run is unfinished, at epoch {run.epoch} of {run.settings.training.epochs}.")
    if flags:
        names = ", ".join(flag.name for flag in flags)
        count = "a flag" if len(flags) == 1 else f"{len(flags)} flags"
        caveats.append(f"Training raised {count}: {names} (see Training).")
    if found is None:
        return Answer("unknown", "Not known yet: this run has not been evaluated.", [_EVALUATE, *caveats])
    stale = outdated(run, found)
    if stale is not None:
        return Answer("unknown", f"Not known yet: {stale}", [_EVALUATE, *caveats])
    details = _beside(found) if found.scores else [_agreement(found)] if found.agreement else []
    return Answer(found.verdict.outcome, found.verdict.sentence, [*details, *caveats])


def outdated(run: Run, found: Evaluation) -> str | None:
    """Return the sentence on scores that are of another state of the run than its weights now, if they are."""
    if run.is_current(found.model_dump()):
        return None
    epoch = found.state.get("epoch")
    then = "an earlier state of the run" if epoch is None else f"the run after epoch {epoch}"
    return f"the scores are of {then}, which is now at epoch {run.epoch}."


_EVALUATE = "'pinoise evaluate' scores the embedding; 'pinoise report' does so by itself for the run's own data."


def _beside(found: Evaluation) -> list[str]:
    """Return the scores with all labels, and what the interval does not cover."""
    raw, learned = found.scores["raw"], found.scores["learned"]
    linear = "ridge regression" if found.measured else "logistic regression"
    shown = [
        f"{name} {100 * ours:.1f} (raw features {100 * theirs:.1f})"
        for name, ours, theirs in (("kNN", learned.knn, raw.knn), (linear, learned.lr, raw.lr))
    ]
    values = "values" if found.measured else "labels"
    return [
        f"With all {values}: {', '.join(shown)}, in percent.",
        f"The interval is over {len(raw.few_draws)} draws of {values}. It does not cover another choice of the "
        f"{found.sizes[1]:,} test rows or of the training seed; 'pinoise compare' with several seeds does.",
    ]


def _agreement(found: Evaluation) -> str:
    ours, chance = found.agreement["learned"], found.agreement["chance"]
    return (
        f"Of a row's {AGREEING} nearest rows among raw features, the embedding keeps {100 * ours:.0f} % (chance "
        f"{100 * chance:.0f} %)."
    )
