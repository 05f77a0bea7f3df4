"""``pinoise evaluate``: is a run's embedding better than raw features?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.choices import MOST_DRAWS
from pinoise.cli.console import SCORE_MEANINGS, SCORE_TITLES, note, on_terminal, print_json, print_table
from pinoise.cli.options import JsonOption, LabelOption, TrustOption, seed_option
from pinoise.errors import UserError

if TYPE_CHECKING:
    from pinoise.information import Estimate, InformationEstimate


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: Annotated[str | None, typer.Option("--data", help="Other data than the run's own: a name or a file.")] = None,
    label: LabelOption = None,
    rows: Annotated[
        int | None, typer.Option(help="Score with at most this many training and test rows, drawn at random.")
    ] = None,
    information: Annotated[
        bool, typer.Option("--information", help="Also measure what the views tell about the task, on training rows.")
    ] = False,
    draws: Annotated[int | None, typer.Option(help="Of every view, for --information.")] = None,
    seed: Annotated[int, seed_option("Of softmax regression and few-label draws.")] = 0,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Score a run's embedding beside raw features and an untrained encoder, on rows that training did not see.

    Example: `pinoise evaluate runs/digits`
    """
    from pinoise.data.tails import HEAVY_TAILS
    from pinoise.evaluation.knn import NEIGHBOURS
    from pinoise.experiments.information import DRAWS, information_of_run
    from pinoise.experiments.scoring import score_run
    from pinoise.experiments.sources import open_scored, sample_rows
    from pinoise.files import WriteError, write_json
    from pinoise.training.load import load_run

    _check_draws(draws)
    if rows is not None and rows < NEIGHBOURS:
        raise UserError(f"--rows is {rows}: kNN looks at {NEIGHBOURS} training rows, so give at least that number.")
    finished = load_run(run, trust=trust)
    labelled = open_scored(finished, data, label=label, progress=on_terminal())
    if rows is not None:
        labelled = sample_rows(labelled, train=rows, test=rows)
    for sentence in [*labelled.notes, *([] if finished.standardizer.tails is None else [HEAVY_TAILS])]:
        note(sentence)
    scores = score_run(finished, labelled, seed=seed)
    result: dict[str, Any] = {
        "data": data or finished.settings.data.source,
        "state": finished.state,
        "seed": seed,
        "rows": rows,
        "scores": {name: value.as_dict() for name, value in scores.items()},
    }
    measured = information_of_run(finished, draws=draws or DRAWS, progress=on_terminal()) if information else {}
    if measured:
        result["information"] = {name: found.as_dict() for name, found in measured.items()}
    try:
        write_json(run / "evaluation.json", result)
    except WriteError as error:  # the scores are still worth printing
        note(f"the scores are not stored: {error}")
    if json:
        print_json(result)
        return
    _print_scores({name: {key: getattr(value, key) for key in SCORE_TITLES} for name, value in scores.items()})
    if measured:
        _print_information(measured)


def _check_draws(draws: int | None) -> None:
    if draws is not None and draws < 2:
        raise UserError(f"--draws is {draws}: mutual information needs at least 2 draws of every view.")
    if draws is not None and draws > MOST_DRAWS:
        raise UserError(f"--draws is {draws}: give at most {MOST_DRAWS}, as the time grows with their square.")


def _print_scores(scores: dict[str, dict[str, float]]) -> None:
    from pinoise.evaluation.logistic import LABELS_PER_CLASS
    from pinoise.experiments.results import columns, distance

    shown = columns([{key: 100 * value for key, value in found.items()} for found in scores.values()])
    lines = [[name, *(f"{100 * found[key]:.1f}" for key in shown)] for name, found in scores.items()]
    print_table(["accuracy (%)", *(SCORE_TITLES[key] for key in shown)], lines)
    print(f"\n{SCORE_MEANINGS}; few-label: LR on {LABELS_PER_CLASS} labels per class.")
    found = distance(scores["learned"]["few"], scores["raw"]["few"])
    print(f"\nWith few labels, the learned embedding is {found} raw features.")


def _print_information(measured: dict[str, InformationEstimate]) -> None:
    def shown(estimate: Estimate) -> str:
        return f"{estimate.value:.3f} ±{estimate.error:.3f}"

    rows = [
        [
            name,
            shown(found.task_entropy),
            shown(found.conditional_entropy),
            shown(found.exact),
            shown(found.plug_in),
        ]
        for name, found in measured.items()
    ]
    print()
    print_table(["views, in nats", "H(T)", "H(T|E)", "exact MI", "plug-in MI"], rows)
    any_one = next(iter(measured.values()))
    print(
        f"\n± standard error; {any_one.draws} draws for {any_one.samples} training rows. Exact MI is 0 for a view that "
        "does not matter to the task; plug-in MI is below 0 where the view makes it harder."
    )
