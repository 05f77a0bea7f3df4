"""CSV files as Arrow tables, whole or piece by piece, with the row named where a file is damaged."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.arrow import is_text, looks_like_number, text_of
from pinoise.data.formats.extensions import uncompressed_name
from pinoise.data.formats.raw import RawTable
from pinoise.data.messages import damaged, free_memory, listed
from pinoise.errors import UserError

MISSING_CELLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A")
LINE_CHARACTERS = 64 << 20  # of the longest header
MANY_COLUMNS = 10_000  # from here on, handing columns to threads takes longer than it saves
UNICODE, WESTERN = "utf-8-sig", "cp1252"
BLOCK_BYTES = 32 << 20  # a row must fit into a block, and tables of gene expression have long rows


class Header(NamedTuple):
    """The first line of a file."""

    names: list[str]
    rows: int  # lines before the data, blank ones counted
    delimiter: str
    encoding: str
    notes: tuple[str, ...]


def read_csv(path: Path, *, text: Sequence[str] = ()) -> RawTable:
    """Read comma-separated values (tab-separated for ``.tsv``); the columns in ``text`` are not guessed to be numbers.

    A first line of numbers is taken for data, unless they count upwards like column numbers.
    """
    try:
        header = read_header(path)
        table = _read_rows(path, header, text)
        is_unicode = not any(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) for kind in table.schema.types)
    except UnicodeDecodeError:
        is_unicode = False
    if not is_unicode:
        try:
            header = read_header(path, WESTERN)
            table = _read_rows(path, header, text)
        except UnicodeDecodeError as error:
            raise not_unicode(path) from error
    if table.num_rows == 0:
        raise UserError(f"{path} has a header but no rows.")
    columns = [without_missing_words(column) if is_text(column.type) else column for column in table.itercolumns()]
    return RawTable(pa.Table.from_arrays(columns, names=header.names), notes=header.notes)


def _read_rows(path: Path, header: Header, text: Sequence[str]) -> Any:
    try:
        return _parse_csv(path, header, text, use_threads=len(header.names) < MANY_COLUMNS)
    except pa.ArrowInvalid as error:
        check_unicode(error)
        return _parse_csv_naming_the_row(path, header, text)
    except (MemoryError, UnicodeDecodeError):
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def read_header(path: Path, encoding: str = UNICODE) -> Header:
    """Return what the first line of a file says: names of columns, or that it has none, and the separator."""
    try:
        with (
            open_compressed(path, limit=None) as stream,
            io.TextIOWrapper(stream, encoding=encoding, newline="") as lines,
        ):
            first, rows = "", 0
            while not first.strip():
                first = _line(lines, path)
                if not first:
                    raise UserError(f"the file {path} is empty.")
                rows += 1
            is_tsv = uncompressed_name(path).lower().endswith(".tsv")
            delimiter = "\t" if is_tsv else _delimiter(first)
            while first.count('"') % 2:  # a quoted name may hold a line break
                more = _line(lines, path, most=LINE_CHARACTERS - len(first))
                if not more:
                    raise UserError(f"{path}: a quotation mark in the header is never closed.")
                first += more
            if "\0" in first:  # after which Arrow would lose rows
                raise UserError(f"{path} is not text in UTF-8: its first line holds a NUL; save it in UTF-8.")
            if not lines.read(1):
                raise UserError(f"{path} has a header but no rows.")
            cells = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise damaged(path, error) from error
    if encoding == WESTERN and any(ord(mark) < 32 and mark not in "\t\r\n" for mark in first):
        raise not_unicode(path)  # nor in any other encoding
    notes = () if delimiter in (",", "\t") else (f"read with {delimiter!r} as the separator",)
    if encoding == WESTERN:
        notes = (*notes, "read as Latin-1 (Windows-1252), because it is not UTF-8")
    names = [name.strip() or f"Unnamed: {position}" for position, name in enumerate(cells)]
    numbers = pc.filter(pa.array(names), looks_like_number(pa.array(names))).to_pylist()
    if 2 * len(numbers) >= len(names) and _count_upwards(numbers):
        notes = (*notes, f"took the numbers of the first line for column names: {listed(names)}")
    elif 2 * len(numbers) >= len(names):
        names = [f"column_{position}" for position in range(len(names))]
        rows -= 1
        notes = (*notes, "the file has no header: columns are called column_0, column_1, ...")
    return Header(names, rows, delimiter, encoding, notes)


def check_unicode(error: pa.ArrowInvalid) -> None:
    """Raise the error of another encoding if that is why Arrow could not read a column of text."""
    if "UTF8" in str(error):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "not UTF-8") from error


def not_unicode(path: Path) -> UserError:
    """Return the error for a file in an encoding that is not known."""
    return UserError(f"{path} is not text in UTF-8: save it in UTF-8.")


def _line(lines: io.TextIOBase, path: Path, *, most: int | None = None) -> str:
    """Return the next line, which must not be longer than any header."""
    most = LINE_CHARACTERS if most is None else most
    line = lines.readline(most + 1)
    if len(line) > most:
        raise UserError(f"{path}: its first line has more than {LINE_CHARACTERS} characters; is it a table?")
    return line


def _delimiter(first: str) -> str:
    """Return a comma unless the first line has none and another separator instead."""
    return next((mark for mark in ",;\t" if mark in first), ",")


def _count_upwards(cells: list[str]) -> bool:
    """Whether numbers can be the names of columns, such as 0, 1, 2 or 1990, 2000, rather than cells."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    return all(earlier < later for earlier, later in itertools.pairwise(int(cell) for cell in cells))


def _parse_csv(path: Path, header: Header, text: Sequence[str], *, use_threads: bool) -> Any:
    with open_compressed(path, limit=free_memory()) as stream:
        return pyarrow.csv.read_csv(
            stream, **csv_options(header, {name: pa.string() for name in text}, use_threads=use_threads)
        )


def csv_options(
    header: Header, types: Mapping[str, Any], *, columns: Sequence[str] = (), use_threads: bool = False
) -> dict[str, Any]:
    """Return how Arrow reads a file; columns of no given type are of the one that their cells have."""
    return {
        "read_options": pyarrow.csv.ReadOptions(
            column_names=header.names,
            skip_rows_after_names=header.rows,
            block_size=BLOCK_BYTES,
            encoding="utf8" if header.encoding == UNICODE else header.encoding,
            use_threads=use_threads,
        ),
        "parse_options": pyarrow.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
        "convert_options": pyarrow.csv.ConvertOptions(
            null_values=list(MISSING_CELLS),
            strings_can_be_null=True,
            column_types=dict(types),
            include_columns=list(columns),
        ),
    }


def _parse_csv_naming_the_row(path: Path, header: Header, text: Sequence[str]) -> Any:
    """Parse again on one thread, where Arrow counts rows, to say which row is wrong."""
    try:
        return _parse_csv(path, header, text, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError):
            raise
        raise parse_problem(path, header, error) from error


def parse_problem(path: Path, header: Header, error: Exception) -> UserError:
    """Return the sentence on what Arrow, on one thread, could not parse."""
    if "straddling" in str(error):
        return UserError(
            f"{path} has a row of more than {BLOCK_BYTES >> 20} MB: is a quotation mark in it never closed?"
        )
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    if ragged is None:
        return damaged(path, error)
    row, expected, got = (int(number) for number in ragged.groups())
    return UserError(
        f"{path}: data row {row - header.rows} has {got} cells where the first line has {expected}: make every row "
        "the same length, and quote cells that hold the separator."
    )


def without_missing_words(column: Any) -> Any:
    """Return trimmed text in which the words for a missing cell are missing even with spaces around them."""
    column = text_of(column)
    missing = pc.is_in(column, value_set=pa.array(MISSING_CELLS, pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), column)
