"""``pinoise evaluate``: is a run's embedding better than raw features?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import SCORE_TITLES, note, on_terminal, print_json, print_table
from pinoise.cli.options import JsonOption, LabelOption


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: Annotated[str | None, typer.Option("--data", help="Other data than the run's own: a name or a file.")] = None,
    label: LabelOption = None,
    seed: Annotated[int, typer.Option(help="Of softmax regression and the few-label draws.")] = 0,
    json: JsonOption = False,
) -> None:
    """Score a run's embedding beside raw features and an untrained encoder, on rows that training did not see.

    Example: `pinoise evaluate runs/digits`
    """
    from pinoise.experiments import distance, open_scored, score_run
    from pinoise.training.files import write_json
    from pinoise.training.finished import load_run

    finished = load_run(run)
    labelled = open_scored(finished, data, label=label, progress=on_terminal())
    for sentence in labelled.notes:
        note(sentence)
    scores = score_run(finished, labelled, seed=seed)
    result = {
        "data": data or finished.settings.data.source,
        "seed": seed,
        "scores": {name: value.as_dict() for name, value in scores.items()},
    }
    write_json(run / "evaluation.json", result)
    if json:
        print_json(result)
        return
    rows = [[name, *(f"{100 * getattr(value, key):.1f}" for key in SCORE_TITLES)] for name, value in scores.items()]
    print_table(["accuracy (%)", *SCORE_TITLES.values()], rows)
    found = distance(scores["learned"].few, scores["raw"].few)
    print(f"\nWith few labels, the learned embedding is {found} raw features.")
