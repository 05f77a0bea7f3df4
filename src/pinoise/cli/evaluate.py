"""``pinoise evaluate``: is a run's embedding better than raw features?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinoise.choices import MOST_DRAWS
from pinoise.cli.console import R2_TITLES, SCORE_MEANINGS, SCORE_TITLES, note, on_terminal, print_json, print_table
from pinoise.cli.options import (
    Change,
    DevicesOption,
    JsonOption,
    LabelOption,
    RegressionOption,
    TrustOption,
    flag_changes,
    seed_option,
)
from pinoise.errors import UserError, either

if TYPE_CHECKING:
    from pinoise.data.options import LaterOptions
    from pinoise.experiments.evaluated import Evaluation, StoredInformation

_MAY_DIFFER = ("data.label", "data.regression", "data.rows", "data.corrupt", "data.stream")
_SETTABLE = either(_MAY_DIFFER, last="and")


def evaluate(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: Annotated[str | None, typer.Option("--data", help="Other data than the run's own: a name or a file.")] = None,
    label: LabelOption = None,
    regression: RegressionOption = None,
    rows: Annotated[
        int | None, typer.Option(help="Score with at most this many training and test rows, drawn at random.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help=f"How --data is read: {_SETTABLE}; repeatable."),
    ] = None,
    information: Annotated[
        bool, typer.Option("--information", help="Also measure what the views tell about the task, on training rows.")
    ] = False,
    draws: Annotated[
        int | None, typer.Option(min=2, max=MOST_DRAWS, help="How often every view is drawn, for --information.")
    ] = None,
    seed: Annotated[int, seed_option("softmax regression and the few-label draws")] = 0,
    devices: DevicesOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Score a run's embedding beside raw features and an untrained encoder, on rows that training did not see.

    Example: `pinoise evaluate runs/digits`
    """
    from pinoise.cli.embed import processes_here
    from pinoise.evaluation.knn import NEIGHBOURS
    from pinoise.experiments.evaluated import evaluate_run, store_evaluation
    from pinoise.experiments.information import DRAWS
    from pinoise.model import load_run

    later, rows = _later_options(flag_changes(context, set_, without=("data", "seed", "devices")))
    if rows is not None and rows < NEIGHBOURS:
        raise UserError(f"--rows is {rows}: kNN looks at {NEIGHBOURS} training rows, so give at least that number.")
    processes = processes_here(devices)
    if not processes:
        return
    loaded = load_run(run, trust=trust)
    found = evaluate_run(
        loaded,
        data,
        later,
        rows=rows,
        seed=seed,
        draws=(draws or DRAWS) if information else None,
        progress=on_terminal(),
        note=note,
        processes=processes,
    )
    store_evaluation(loaded, found, note=note)
    if json:
        print_json(found.as_dict())
    else:
        _print_evaluation(found, shape=loaded.standardizer.shape, information=information)


def _later_options(changes: list[Change]) -> tuple[LaterOptions, int | None]:
    """Return how other data is read, and the most rows of it; refuse what the run has decided."""
    from pinoise.data.options import LaterOptions
    from pinoise.training.config import override, parse_settings

    for path, _ in changes:
        if path not in _MAY_DIFFER:
            raise UserError(
                f"--set {path}: a run reads all data as in training, and only {_SETTABLE} may differ: leave it out."
            )
    data = parse_settings(override({}, changes)).data
    given = {path.partition(".")[2] for path, _ in changes} - {"rows"}
    return LaterOptions(**{name: getattr(data, name) for name in given}), data.rows


def _print_evaluation(found: Evaluation, *, shape: tuple[int, ...], information: bool) -> None:
    from pinoise.experiments.sources import where_labels_go

    if found.scores:
        _print_scores(found)
    print(found.verdict.sentence)
    if not found.scores:
        print(f"For labels to score it with, {where_labels_go(shape)}; --data takes other data.")
    _print_agreement(found)
    if information:
        _print_information(found.information)


def _print_scores(found: Evaluation) -> None:
    from pinoise.evaluation.logistic import LABELS_PER_CLASS
    from pinoise.experiments.results import columns

    titles = R2_TITLES if found.measured else SCORE_TITLES
    points = {
        name: {key: 100 * value for key, value in scores.model_dump(include=set(titles), exclude_none=True).items()}
        for name, scores in found.scores.items()
    }
    shown = columns(list(points.values()))
    lines = [[name, *(f"{values[key]:.1f}" for key in shown)] for name, values in points.items()]
    print_table(["R² (%)" if found.measured else "accuracy (%)", *(titles[key] for key in shown)], lines)
    if not found.measured:
        print(f"\n{SCORE_MEANINGS}; few-label: LR on {LABELS_PER_CLASS} labels per class.")
    print()


def _print_agreement(found: Evaluation) -> None:
    from pinoise.evaluation.knn import AGREEING

    if found.agreement:
        shares = {name: f"{100 * share:.0f} %" for name, share in found.agreement.items()}
        print(
            f"Of a row's {AGREEING} nearest rows among raw features, the embedding keeps {shares['learned']} "
            f"(untrained {shares['untrained']}, chance {shares['chance']})."
        )


def _print_information(measured: dict[str, StoredInformation]) -> None:
    from pinoise.experiments.evaluated import INFORMATION

    print()
    print_table(["views, in nats", *INFORMATION.values()], [[name, *found.cells] for name, found in measured.items()])
    any_one = next(iter(measured.values()))
    print(
        f"\n± standard error; {any_one.draws} draws for {any_one.samples} training rows. Exact MI is 0 for a view that "
        "does not matter to the task; plug-in MI is below 0 where the view makes it harder."
    )
