"""``pinoise predict``: the classes of new data by a run that was trained with ``--target``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import note, on_one_line, on_terminal, print_json
from pinoise.cli.options import DataOption, ForceOption, JsonOption, TrustOption

FORMATS = (".csv", ".parquet")


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
    from pinoise.data.source import source_files
    from pinoise.errors import UserError
    from pinoise.estimator.run_classifier import classifier_of, write_predictions
    from pinoise.evaluation import check_embedding_file
    from pinoise.files import RUN_FILES, check_output
    from pinoise.training.load import load_run

    if out.suffix.lower() not in FORMATS:
        raise UserError(f"{out} has extension {out.suffix!r}: predictions are written as {', '.join(FORMATS)}.")
    check_embedding_file(out, inputs=[*source_files(data), *(run / name for name in RUN_FILES)], force=force)
    finished = load_run(run, trust=trust)
    check_output(out, inputs=source_files(finished.settings.data.source), force=force)
    classifier = classifier_of(finished)
    source = finished.read(data, labelled=False, progress=on_terminal())
    for sentence in finished.new_notes(source.notes, data):
        note(sentence)
    probabilities = classifier.probabilities(source.train, where=data)
    write_predictions(out, classifier.classes, probabilities)
    counts = {name: int((probabilities.argmax(axis=1) == i).sum()) for i, name in enumerate(classifier.classes)}
    if json:
        print_json({"out": str(out), "rows": len(probabilities), "classes": counts})
    else:
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        print(on_one_line(f"{out}: {len(probabilities)} rows; {found}"))  # the names are from a file
