"""The first look at a text file: its encoding, its separator, and the names of its columns."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.extensions import uncompressed_name
from pinoise.data.messages import damaged, listed
from pinoise.data.table.cells import looks_like_number
from pinoise.errors import UserError

LINE_CHARACTERS = 64 << 20  # of the longest header
UNICODE, WESTERN = "utf-8-sig", "cp1252"

_BLOCK = 1 << 22  # bytes looked at together


class Header(NamedTuple):
    """The first line of a file."""

    names: tuple[str, ...]
    rows: int  # lines before the data, blank ones counted
    delimiter: str
    encoding: str
    notes: tuple[str, ...]


def read_header(path: Path) -> Header:
    """Return what the first line of a file says: names of columns, or that it has none, and the separator.

    A first line of numbers is taken for data, unless they count upwards like column numbers.
    """
    encoding = UNICODE if _is_unicode(path) else WESTERN
    try:
        with (
            open_compressed(path, limit=None) as stream,
            io.TextIOWrapper(stream, encoding=encoding, newline="") as lines,
        ):
            first, rows = _first_line(lines, path)
            is_tsv = uncompressed_name(path).lower().endswith(".tsv")
            delimiter = "\t" if is_tsv else next((mark for mark in ",;\t" if mark in first), ",")
            while first.count('"') % 2:  # a quoted name may hold a line break
                more = _line(lines, path, most=LINE_CHARACTERS - len(first))
                if not more:
                    raise UserError(f"{path}: a quotation mark in the header is never closed.")
                first += more
            if not lines.read(1):
                raise UserError(f"{path} has a header but no rows.")
            cells = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise damaged(path, error) from error
    except UnicodeDecodeError as error:
        raise _not_text(path) from error
    if any(ord(mark) < 32 and mark not in "\t\r\n" for mark in first):  # as in UTF-16
        raise _not_text(path)
    notes = () if delimiter in (",", "\t") else (f"read with {delimiter!r} as the separator",)
    if encoding == WESTERN:
        notes = (*notes, "read as Latin-1 (Windows-1252), because it is not UTF-8")
    names = tuple(name.strip() or f"Unnamed: {position}" for position, name in enumerate(cells))
    numbers = pc.filter(pa.array(names), looks_like_number(pa.array(names))).to_pylist()
    if 2 * len(numbers) >= len(names) and _count_upwards(numbers):
        notes = (*notes, f"took the numbers of the first line for column names: {listed(names)}")
    elif 2 * len(numbers) >= len(names):
        names, rows = tuple(f"column_{position}" for position in range(len(names))), rows - 1
        notes = (*notes, "the file has no header: columns are called column_0, column_1, ...")
    return Header(names, rows, delimiter, encoding, notes)


def _is_unicode(path: Path) -> bool:
    """Whether all of a file is text in UTF-8, which takes a pass over its bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_compressed(path, limit=None) as stream:
        try:
            while block := stream.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _not_text(path: Path) -> UserError:
    return UserError(f"{path} is not text in UTF-8: save it in UTF-8.")


def _first_line(lines: io.TextIOBase, path: Path) -> tuple[str, int]:
    """Return the first line that is not blank, and its number from 1."""
    for number in itertools.count(1):
        line = _line(lines, path, most=LINE_CHARACTERS)
        if not line:
            raise UserError(f"the file {path} is empty.")
        if line.strip():
            return line, number
    raise AssertionError("unreachable")


def _line(lines: io.TextIOBase, path: Path, *, most: int) -> str:
    """Return the next line, which must not be longer than any header."""
    line = lines.readline(most + 1)
    if len(line) > most:
        raise UserError(f"{path}: its first line has more than {LINE_CHARACTERS} characters; is it a table?")
    return line


def _count_upwards(cells: list[str]) -> bool:
    """Whether numbers can be the names of columns, such as 0, 1, 2 or 1990, 2000, rather than cells."""
    whole = [int(cell) for cell in cells if cell.isdecimal()]
    return len(whole) == len(cells) and all(earlier < later for earlier, later in itertools.pairwise(whole))
