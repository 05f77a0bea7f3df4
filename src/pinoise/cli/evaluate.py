"""``pinoise evaluate``: is a run's embedding better than raw features?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import SCORE_TITLES, note, print_json, print_table
from pinoise.cli.options import JsonOption, LabelOption


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: Annotated[str | None, typer.Option("--data", help="Other data than the run's own: a name or a file.")] = None,
    label: LabelOption = None,
    seed: Annotated[int, typer.Option(help="Of softmax regression and the few-label draws.")] = 0,
    json: JsonOption = False,
) -> None:
    """Score a run's embedding beside raw features and an untrained encoder.

    Example: `pinoise evaluate runs/digits`
    """
    from pinoise.data.splitting import split
    from pinoise.experiments import distance, score_run
    from pinoise.training.files import write_json
    from pinoise.training.finished import load_run

    finished = load_run(run)
    source = finished.settings.data.source if data is None else data
    labelled = split(finished.read(source, label=label or (finished.settings.data.label if data is None else None)))
    for sentence in labelled.notes:
        note(sentence)
    scores = score_run(finished, labelled, seed=seed)
    result = {"data": source, "seed": seed, "scores": {name: value.as_dict() for name, value in scores.items()}}
    write_json(run / "evaluation.json", result)
    if json:
        print_json(result)
        return
    rows = [[name, *(f"{100 * getattr(value, key):.1f}" for key in SCORE_TITLES)] for name, value in scores.items()]
    print_table(["accuracy (%)", *SCORE_TITLES.values()], rows)
    found = distance(scores["learned"].few, scores["raw"].few)
    print(f"\nWith few labels, the learned embedding is {found} raw features.")
