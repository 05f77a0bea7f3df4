"""``pinoise predict``: the classes of new data by a run that was trained with ``--target``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import on_one_line, print_json
from pinoise.cli.embed import open_run, read_noted
from pinoise.cli.options import DataOption, ForceOption, JsonOption, TrustOption


def predict(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run that was trained with --target.")],
    data: DataOption,
    out: Annotated[Path, typer.Option("--out", help="The file to write: .csv or .parquet.")],
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Predict the class of every row, with the probability of each class, in the order of the data.

    Example: `pinoise predict runs/mine --data new.csv --out predictions.csv`
    """
    from pinoise.estimator.run_classifier import classifier_of, write_predictions
    from pinoise.evaluation import TABLES

    finished = open_run(run, data, out, what="a prediction", formats=TABLES, force=force, trust=trust)
    classifier = classifier_of(finished)
    source = read_noted(finished, data)
    probabilities = classifier.probabilities(source.train, where=data)
    write_predictions(out, classifier.classes, probabilities)
    counts = {name: int((probabilities.argmax(axis=1) == i).sum()) for i, name in enumerate(classifier.classes)}
    if json:
        print_json({"out": str(out), "rows": len(probabilities), "classes": counts})
    else:
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        print(on_one_line(f"{out}: {len(probabilities)} rows; {found}"))  # the names are from a file
