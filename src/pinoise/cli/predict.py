"""``pinoise predict``: the classes of new data by a run that was trained with ``--target``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    from pinoise.evaluation import TABLES

    finished = open_run(run, data, out, what="a prediction", formats=TABLES, force=force, trust=trust)
    classes = list(map(str, finished.classifier.classes))
    probabilities = finished.predict(read_noted(finished, data).train.x)
    _write(out, classes, probabilities)
    counts = {name: int((probabilities.argmax(axis=1) == i).sum()) for i, name in enumerate(classes)}
    if json:
        print_json({"out": str(out), "rows": len(probabilities), "classes": counts})
    else:
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        print(on_one_line(f"{out}: {len(probabilities)} rows; {found}"))  # the names are from a file


def _write(path: Path, classes: list[str], probabilities: Any) -> None:
    """Write the most probable ``class`` of every row, and a column ``p=class`` for each, complete or not at all."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from pinoise.files import written_file

    columns = {"class": pa.array(classes, pa.string()).take(pa.array(probabilities.argmax(axis=1)))}
    columns |= {f"p={name}": pa.array(probabilities[:, i]) for i, name in enumerate(classes)}
    write = csv.write_csv if path.suffix.lower() == ".csv" else parquet.write_table
    with written_file(path) as file:
        write(pa.table(columns), file)
