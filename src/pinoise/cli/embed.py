"""``pinoise embed``: the embedding of new data by a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import note, on_terminal, print_json
from pinoise.cli.options import DataOption, ForceOption, JsonOption, TrustOption


def embed(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: DataOption,
    out: Annotated[Path, typer.Option("--out", help="The file to write: .npy, .npz, .csv or .parquet.")],
    part: Annotated[str, typer.Option(help="train or test, for data that has both; .npz takes both.")] = "train",
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Embed data with a finished run, row by row in the order of the data; rows of a folder of images are named.

    Example: `pinoise embed runs/digits --data digits --out digits.npz`
    """
    from pinoise.data.dataset import Part
    from pinoise.data.source import source_files
    from pinoise.errors import UserError, unknown_choice
    from pinoise.evaluation import check_embedding_file, write_embedding
    from pinoise.evaluation import embed as embed_rows
    from pinoise.files import RUN_FILES, check_output
    from pinoise.training.load import load_run

    inputs = [*source_files(data), *(run / name for name in RUN_FILES)]
    check_embedding_file(out, inputs=inputs, force=force)
    finished = load_run(run, trust=trust)
    check_output(out, inputs=source_files(finished.settings.data.source), force=force)
    source = finished.read(data, labelled=False, progress=on_terminal())
    changed = finished.change_of(data, progress=on_terminal())
    for sentence in (*source.notes, *([] if changed is None else [changed])):
        note(sentence)
    parts: dict[str, Part | None] = {"train": source.train, "test": source.test}
    if part not in parts:
        raise unknown_choice("part", part, parts)
    wanted = parts if out.suffix.lower() == ".npz" else {part: parts[part]}
    if wanted.get(part) is None:
        raise UserError(f"{data} has no {part} part: use --part train.")
    present = {name: rows for name, rows in wanted.items() if rows is not None}
    embeddings = {
        name: embed_rows(finished.embedding, finished.rows(rows.x, where=data)) for name, rows in present.items()
    }
    files = {name: rows.names for name, rows in present.items() if rows.names is not None}
    write_embedding(out, embeddings, names=files, force=force)
    shapes = {name: list(z.shape) for name, z in embeddings.items()}
    if json:
        print_json({"out": str(out), "shapes": shapes})
    else:
        print(f"{out}: " + ", ".join(f"{name} {rows} × {width}" for name, (rows, width) in shapes.items()))
