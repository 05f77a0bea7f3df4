"""An embedding in parts: a folder of Parquet files, each complete or absent, so that work goes on after any end.

Every part has a number and holds the rows of one piece of the data, so a part that is written twice is the same file.
Beside the parts, ``_plan.json`` says what the folder is to hold. Readers of Parquet folders leave such names out.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from pinoise.data.table.parquet import Place
from pinoise.errors import UserError
from pinoise.files import replaced_by, sealed, to_json, unsealed, written

PLAN = "_plan.json"


class Plan(NamedTuple):
    """What a folder of parts is to hold: whose embedding, of what, the columns beside it, and the rows of each part."""

    weights: str  # the checksum of the embedding
    source: str  # the fingerprint of the data
    keep: tuple[str, ...]
    rows: tuple[int, ...]


def part_name(number: int) -> str:
    """Return the name of a part. The names sort as the rows do.

    >>> part_name(3)
    'part-00003.parquet'
    """
    return f"part-{number:05d}.parquet"


def begin(out: Place, plan: Plan, *, force: bool = False) -> list[int]:
    """Make a folder of parts, or go on with one of the same plan. Return the numbers of the parts that are missing.

    Args:
        out: the folder.
        plan: what it is to hold.
        force: whether a folder of another plan is begun again. Only its parts are deleted.
    """
    there = _without_leftovers(out, _names(out))
    before = _read_plan(out) if PLAN in there else None
    parts = [name for name in there if name.startswith("part-") and name.endswith(".parquet")]
    if before == plan:
        return [number for number in range(len(plan.rows)) if part_name(number) not in parts]
    if there and not (force and PLAN in there):
        what = "holds another embedding" if before else "is not empty"
        raise UserError(f"{out.name} {what}: choose another folder to write, or begin it again with --force.")
    with _errors(out):
        out.filesystem.create_dir(out.path, recursive=True)
        for name in parts:
            out.filesystem.delete_file(out.inside(name))
        with _written(out, PLAN) as file:
            file.write(to_json(sealed(plan._asdict())).encode())
    return list(range(len(plan.rows)))


def write_part(out: Place, number: int, tables: Iterable[Any]) -> int:
    """Write a part from one table or more, of one schema, complete or not at all. Return its rows."""
    rows, tables = 0, iter(tables)
    first = next(tables)
    # Hardly any number of an embedding repeats: a dictionary of them takes time and makes the file larger.
    repeated = [field.name for field in first.schema if not pa.types.is_floating(field.type)]
    with (
        _errors(out),
        _written(out, part_name(number)) as file,
        pa.parquet.ParquetWriter(file, first.schema, use_dictionary=repeated) as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table)
            rows += table.num_rows
    return rows


def check_parts(out: Place, plan: Plan) -> None:
    """Refuse a folder in which a part is missing or has other rows than planned. Only footers are read."""
    for number, planned in enumerate(plan.rows):
        name = part_name(number)
        try:
            with out.filesystem.open_input_file(out.inside(name)) as file:
                found = pa.parquet.ParquetFile(file).metadata.num_rows
        except (OSError, pa.ArrowException):
            raise UserError(f"{out.name}: {name} cannot be read; delete it and give the command again.") from None
        if found != planned:
            raise UserError(
                f"{out.name}: {name} has {found} rows instead of {planned}; delete it and give the command again."
            )


def _names(out: Place) -> list[str]:
    """Return the files of the folder; none if it does not exist."""
    selector = pa.fs.FileSelector(out.path, allow_not_found=True)
    with _errors(out):
        if out.filesystem.get_file_info(out.path).type == pa.fs.FileType.File:
            raise UserError(f"{out.name} is a file: parts are written to a folder.")
        return [info.base_name for info in out.filesystem.get_file_info(selector)]


def _without_leftovers(out: Place, names: list[str]) -> list[str]:
    """Delete what killed processes have left of parts and plans on a disk of this machine. Return the other names."""
    if out.is_local:
        with _errors(out):
            for name in (name for name in names if (replaced_by(name) or "").startswith(("part-", PLAN))):
                out.filesystem.delete_file(out.inside(name))
    return [name for name in names if replaced_by(name) is None]


def _read_plan(out: Place) -> Plan | None:
    try:
        with out.filesystem.open_input_stream(out.inside(PLAN)) as file:
            stored = unsealed(json.loads(file.read()), where=PLAN)
        return Plan(stored["weights"], stored["source"], tuple(stored["keep"]), tuple(stored["rows"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _written(out: Place, name: str) -> Iterator[Any]:
    """Yield a file that gets its name when the block ends without an error."""
    if out.is_local:
        with written(Path(out.inside(name))) as temporary, temporary.open("wb") as local:
            yield local
        return
    unfinished = out.inside(f"_{name}.{secrets.token_hex(8)}")
    try:
        with out.filesystem.open_output_stream(unfinished) as file:
            yield file
        out.filesystem.move(unfinished, out.inside(name))
    except BaseException:
        with suppress(OSError):
            out.filesystem.delete_file(unfinished)
        raise


@contextmanager
def _errors(out: Place) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{out.name} cannot be written ({' '.join(str(error).split())}).") from None
