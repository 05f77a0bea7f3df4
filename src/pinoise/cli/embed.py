"""``pinoise embed``: the embedding of new data by a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.cli.console import note, on_one_line, on_terminal, print_json, say
from pinoise.cli.options import DataOption, DevicesOption, EngineOption, ForceOption, JsonOption, TrustOption

if TYPE_CHECKING:
    from pinoise.data.dataset import Dataset
    from pinoise.model import Model

PassedOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Pass a column of the table through, as an id or a label; repeatable."),
]


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
    keep: PassedOption = None,
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
    from pinoise.errors import UserError
    from pinoise.evaluation import FORMATS
    from pinoise.model import load_run

    in_parts = engine is not None or out.endswith("/")
    if in_parts and part != "train":
        raise UserError(f"--part is for one file, and {out} is a folder of parts: leave it out, or give a file.")
    processes = processes_here(devices) if engine is None else devices
    if processes == 0:
        return
    if in_parts:
        found = _embed_in_parts(load_run(run, trust=trust), data, out, keep or [], engine, processes, force=force)
    else:
        finished = open_run(run, data, Path(out), what="an embedding", formats=FORMATS, force=force, trust=trust)
        found = _embed_file(finished, data, Path(out), part, keep or [], processes or 1, force=force)
    if json:
        print_json({"out": out, **found})
        return
    sizes = ", ".join(f"{name} {rows} × {width}" for name, (rows, width) in found["shapes"].items())
    parts = f" in {found['parts']} part{'s' if found['parts'] != 1 else ''}" if "parts" in found else ""
    beside = f", beside {', '.join(found['kept'])}" if found["kept"] else ""
    print(on_one_line(f"{out}: {sizes}{parts}{beside}"))  # the names are from a file


def processes_here(devices: int | None) -> int:
    """Return how many processes share the work, which the first of those that torchrun started takes on: 0 for others.

    >>> processes_here(3)
    3
    """
    from pinoise.training.processes import find_group

    group = find_group()
    return 0 if group.rank else devices or group.per_node


def open_run(
    run: Path, data: str | None, out: Path, *, what: str, formats: tuple[str, ...], force: bool, trust: bool
) -> Model:
    """Load a run after a look at the file to write, which must be none of those that are read.

    Args:
        run: the folder.
        data: what is read beside it, if anything.
        out: the file to write.
        what: what will be written; an error message names it.
        formats: the extensions that the file may have.
        force: whether a file that exists is replaced.
        trust: whether the run's own parts are imported.
    """
    from pinoise.data.source import source_files
    from pinoise.files import RUN_FILES, check_new_file, check_output
    from pinoise.model import load_run

    read = [*(() if data is None else source_files(data)), *(run / name for name in RUN_FILES)]
    check_new_file(out, extensions=formats, what=what, inputs=read, force=force)
    finished = load_run(run, trust=trust)
    check_output(out, inputs=source_files(finished.settings.data.source), force=force)
    return finished


def read_noted(run: Model, data: str) -> Dataset:
    """Read data as a run read its own, and tell what is new about it."""
    source = run.read(data, labelled=False, progress=on_terminal())
    note(*run.new_notes(source.notes, data))
    return source


def _embed_in_parts(
    run: Model, data: str, out: str, keep: list[str], engine: str | None, processes: int | None, *, force: bool
) -> dict[str, Any]:
    """Embed any data into a folder of parts."""
    from pinoise.engines.embedding import plan_work
    from pinoise.evaluation import WHOLE
    from pinoise.evaluation.workers import mapped
    from pinoise.files import check_output

    if "://" not in out:
        check_output(Path(out), force=True)  # the folder may be there already
    work = plan_work(run, data, out, keep=keep, force=force, progress=on_terminal())
    note(*work.notes)
    sizes = work.plan.rows
    if len(work.missing) < len(sizes):
        note(f"{len(sizes) - len(work.missing)} of {len(sizes)} parts are there already")
    map_: Any = mapped
    if engine is not None:
        from pinoise.engines.ray_cluster import mapped_on_ray as map_
    work.write_missing(processes=processes, map_=map_, done=lambda number: say(f"part {number + 1} of {len(sizes)}"))
    return {"shapes": {WHOLE: (sum(sizes), len(run.column_names))}, "kept": work.plan.keep, "parts": len(sizes)}


def _embed_file(
    run: Model, data: str, out: Path, part: str, keep: list[str], processes: int, *, force: bool
) -> dict[str, Any]:
    """Embed any data into one file. Data without a split of its own is neither training nor test rows."""
    from pinoise.engines.embedding import columns_beside
    from pinoise.errors import UserError, unknown_choice
    from pinoise.evaluation import TABLES, WHOLE, write_embedding
    from pinoise.evaluation import embed as embed_rows

    if keep and out.suffix.lower() not in TABLES:
        raise UserError(f"{out} has no columns to keep others beside: write {' or '.join(TABLES)}.")
    if part not in ("train", "test"):
        raise unknown_choice("part", part, ("train", "test"))
    source = read_noted(run, data)
    if source.test is not None:
        parts = {"train": source.train, "test": source.test}
        parts = parts if out.suffix.lower() == ".npz" else {part: parts[part]}
    elif part == "test":
        raise UserError(f"{data} has no test part: leave out --part.")
    else:
        parts = {WHOLE: source.train}
    beside = {name: columns_beside(data, p, keep, run.column_names) for name, p in parts.items()}
    z = {name: embed_rows(run.embedding, run.rows(p.x, where=data), processes=processes) for name, p in parts.items()}
    write_embedding(out, z, columns=run.column_names, beside=beside, force=force)
    return {"shapes": {name: found.shape for name, found in z.items()}, "kept": keep}
