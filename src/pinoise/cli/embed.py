"""``pinoise embed``: the embedding of new data by a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.cli.console import note, on_one_line, on_terminal, print_json
from pinoise.cli.options import DataOption, DevicesOption, EngineOption, ForceOption, JsonOption, TrustOption

if TYPE_CHECKING:
    from pinoise.data.dataset import Dataset, Part
    from pinoise.evaluation.sharing import Team


def embed(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    data: DataOption,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="FILE", help="The file to write: .npy, .npz, .csv or .parquet; or FOLDER/ for parts."
        ),
    ],
    part: Annotated[
        str, typer.Option(help="train or test, for data that comes in these parts; .npz takes both.")
    ] = "train",
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Pass a column of the table through, as an id or a label; repeatable."),
    ] = None,
    engine: EngineOption = None,
    devices: DevicesOption = None,
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Embed data with a finished run, row by row in the order of the data; rows of a folder of images are named.

    The columns are the standardised features under their own names, and beside them the learned ones: `pinda0`,
    `pinda1` and so on, as many as `encoder.out_features`. A run on images, or with `embedding=learned`, has the learned
    ones alone.

    Example: `pinoise embed runs/mine --data new.csv --keep id --keep class --out new.parquet`

    Data larger than memory: `pinoise embed runs/mine --data many.parquet --out many/` writes a folder of Parquet files,
    part by part. The same command goes on where it was stopped or killed.

    On a cluster: `pinoise embed runs/mine --data s3://new/table --out s3://new/embedding --engine ray`
    """
    from pinoise.cli.cluster import embed_in_parts, embed_on_cluster, together
    from pinoise.errors import UserError

    if engine is not None:
        embed_on_cluster(run, data, out, keep=keep or [], workers=devices, force=force, trust=trust, as_json=json)
        return
    if out.endswith("/"):
        if part != "train" or devices is not None:
            option = "--part" if part != "train" else "--devices"
            raise UserError(f"{option} is for one file, and {out} is a folder of parts: leave it out, or give a file.")
        embed_in_parts(run, data, out, keep=keep or [], force=force, trust=trust, as_json=json)
        return
    with together(devices) as team:
        _embed_here(run, data, Path(out), team, part=part, keep=keep or [], force=force, trust=trust, as_json=json)


def _embed_here(
    run: Path, data: str, out: Path, team: Team, *, part: str, keep: list[str], force: bool, trust: bool, as_json: bool
) -> None:
    """Embed any data into one file, which the first of several processes writes."""
    from pinoise.data.source import source_files
    from pinoise.evaluation import check_embedding_file, write_embedding
    from pinoise.files import RUN_FILES, check_output
    from pinoise.training.load import load_run

    inputs = [*source_files(data), *(run / name for name in RUN_FILES)]
    check_embedding_file(out, inputs=inputs, force=force)
    finished = load_run(run, trust=trust)
    check_output(out, inputs=source_files(finished.settings.data.source), force=force)
    kept = _kept_columns(data, keep, out, finished.column_names)
    source = finished.read(data, labelled=False, progress=on_terminal())
    changed = finished.change_of(data, progress=on_terminal())
    for sentence in (*finished.new_notes(source.notes, data), *([] if changed is None else [changed])):
        if team.is_first:
            note(sentence)
    parts = _parts(source, part, every=out.suffix.lower() == ".npz", where=data)
    embeddings = {
        name: team.embed(finished.embedding, finished.rows(rows.x, where=data)) for name, rows in parts.items()
    }
    if not team.is_first:
        return
    files = {name: rows.names for name, rows in parts.items() if rows.names is not None}
    write_embedding(out, embeddings, columns=finished.column_names, names=files, kept=kept, force=force)
    shapes = {name: list(z.shape) for name, z in embeddings.items()}
    if as_json:
        print_json({"out": str(out), "shapes": shapes, "kept": list(kept)})
    else:
        beside = f", beside {', '.join(kept)}" if kept else ""
        sizes = ", ".join(f"{name} {rows} × {width}" for name, (rows, width) in shapes.items())
        print(on_one_line(f"{out}: {sizes}{beside}"))  # the names are from a file


def _parts(source: Dataset, wanted: str, *, every: bool, where: str) -> dict[str, Part]:
    """Return the parts to embed by name. Data without a split of its own is neither training nor test rows."""
    from pinoise.errors import UserError, unknown_choice
    from pinoise.evaluation import WHOLE

    known = ("train", "test")
    if wanted not in known:
        raise unknown_choice("part", wanted, known)
    if source.test is None:
        if wanted == "test":
            raise UserError(f"{where} has no test part: leave out --part.")
        return {WHOLE: source.train}
    both = {"train": source.train, "test": source.test}
    return both if every else {wanted: both[wanted]}


def _kept_columns(data: str, keep: list[str], out: Path, own: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns to pass through, as they stand in the table; refuse what is none."""
    if not keep:
        return {}
    import pyarrow as pa

    from pinoise.data.encoding.tables import column_names, find_column
    from pinoise.data.source import find_source
    from pinoise.data.streaming.tables import table_in_pieces
    from pinoise.errors import UserError
    from pinoise.evaluation import TABLES

    if out.suffix.lower() not in TABLES:
        raise UserError(f"{out} has no columns to keep others beside: write {' or '.join(TABLES)}.")
    found = find_source(data)
    if found.kind != "table":
        raise UserError(f"--keep names columns of a table ({', '.join(TABLES)}), and {data} is none.")
    # In pieces, so that no other column is in memory; as text, so that an id keeps its leading zeros.
    with table_in_pieces(found, text=tuple(keep)) as raw:
        there = column_names(raw, where=data)
        columns = [find_column(name, there, where=data) for name in dict.fromkeys(keep)]
        for name in columns:
            if name in own:
                raise UserError(f"--keep {name}: the embedding has this column already, standardised; leave it out.")
        table = pa.concat_tables([piece for _, piece in raw.pieces(columns)])
    return {name: table.column(name) for name in columns}
