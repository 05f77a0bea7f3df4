"""An embedding in parts: a folder of Parquet files, each complete or absent, so that work goes on after any end.

Every part has a number and holds the rows of one piece of the data, so a part that is written twice is the same file.
Beside the parts, ``_plan.json`` says what the folder is to hold. Readers of Parquet folders leave such names out.
"""

from __future__ import annotations

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
from pinoise.files import sync, to_json, writing

PLAN = "_plan.json"
_UNFINISHED = "_unfinished-"


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
    content = to_json(plan._asdict()).encode()
    with writing(out.name):
        there = _names(out)
        parts = [name for name in there if name.startswith("part-") and name.endswith(".parquet")]
        if PLAN in there:
            with out.filesystem.open_input_stream(out.inside(PLAN)) as file:
                if file.read() == content:
                    return [number for number in range(len(plan.rows)) if part_name(number) not in parts]
        if there and not (force and PLAN in there):
            what = "holds another embedding" if PLAN in there else "is not empty"
            raise UserError(f"{out.name} {what}: choose another folder to write, or begin it again with --force.")
        out.filesystem.create_dir(out.path, recursive=True)
        for name in parts:
            out.filesystem.delete_file(out.inside(name))
        with _written(out, PLAN) as file:
            file.write(content)
    return list(range(len(plan.rows)))


def write_part(out: Place, number: int, tables: Iterable[Any]) -> int:
    """Write a part from one table or more, of one schema, complete or not at all. Return its rows."""
    rows, tables = 0, iter(tables)
    first = next(tables)
    # Hardly any number of an embedding repeats: a dictionary of them takes time and makes the file larger.
    repeated = [field.name for field in first.schema if not pa.types.is_floating(field.type)]
    with (
        writing(out.name),
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
            what = f"has {found} rows instead of {planned}"
        except (OSError, pa.ArrowException):
            found, what = -1, "cannot be read"
        if found != planned:
            raise UserError(f"{out.name}: {name} {what}; delete it and give the command again.")


def _names(out: Place) -> list[str]:
    """Return the files of the folder, none if it does not exist, without what killed processes have left of some.

    On a disk of this machine, that is deleted.
    """
    if out.filesystem.get_file_info(out.path).type == pa.fs.FileType.File:
        raise UserError(f"{out.name} is a file: parts are written to a folder.")
    selector = pa.fs.FileSelector(out.path, allow_not_found=True)
    names = [info.base_name for info in out.filesystem.get_file_info(selector)]
    leftovers = [name for name in names if name.startswith(_UNFINISHED)]
    for name in leftovers if out.is_local else []:
        out.filesystem.delete_file(out.inside(name))
    return [name for name in names if name not in leftovers]


@contextmanager
def _written(out: Place, name: str) -> Iterator[Any]:
    """Yield a file that gets its name when the block ends without an error."""
    unfinished = out.inside(f"{_UNFINISHED}{name}.{secrets.token_hex(8)}")
    try:
        with out.filesystem.open_output_stream(unfinished) as file:
            yield file
        if out.is_local:
            sync(Path(unfinished))
        out.filesystem.move(unfinished, out.inside(name))
    except BaseException:
        with suppress(OSError):
            out.filesystem.delete_file(unfinished)
        raise
