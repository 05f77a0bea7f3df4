"""A table as a repeatable stream of Arrow batches, and text files as such streams.

Cells of a text file stay text until the encoding types them, so that a column is typed by all that is looked at.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pinoise.data.formats.opened import compression_of, open_compressed
from pinoise.data.table.cells import MISSING_WORDS, is_number, is_text, looks_like_number, text_of, without
from pinoise.errors import UserError, damaged, listed

BATCH_ROWS = 1 << 16  # of a frame
BLOCK_BYTES = 32 << 20  # a row of text must fit into a block, and tables of gene expression have long rows
LINE_CHARACTERS = 64 << 20  # of the longest header
UNICODE, WESTERN = "utf-8-sig", "cp1252"

_UNPACKED = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True)
class Table:
    """A table with named columns that is read batch by batch, as often as it is asked.

    >>> table = Table(("a", "b"), "toy", lambda columns: iter([pa.table({"a": ["1"], "b": ["?"]}).select(columns)]))
    >>> [(first, batch.to_pydict()) for first, batch in replace(table, na=("?",)).batches(["b"])]
    [(0, {'b': [None]})]
    """

    names: tuple[str, ...]
    where: str  # what messages call it
    read: Callable[[Sequence[str]], Iterator[Any]] = field(repr=False)  # from columns to Arrow tables of bounded size
    rows: int | None = None  # None where only reading tells
    size: int = 0  # bytes of its numbers in double precision, or of its text
    kinds: Mapping[str, Any] | None = None  # Arrow types; None for text, whose types its cells tell
    y: Any = None  # labels that come apart from it, as an Arrow array
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    na: tuple[str, ...] = ()  # cells that are missing, beside the usual ones

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            twice = Counter(self.names).most_common(1)[0][0]
            raise UserError(f"{self.where} has more than one column called {twice!r}: rename them.")
        if self.rows == 0:
            raise UserError(f"{self.where} has no rows.")

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield Arrow tables of these columns with their first row, in order; together they are all rows."""
        return ((first, self.cleaned(batch)) for first, batch in self.uncleaned(columns))

    def uncleaned(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield the same as they stand in the source; ``cleaned`` makes batches of them."""
        first = 0
        for batch in self.read(columns):
            yield first, batch
            first += batch.num_rows
        if first == 0:
            raise UserError(f"{self.where} has a header but no rows.")

    def cleaned(self, batch: Any) -> Any:
        """Return an Arrow table with every column in one piece, and cells that say so missing."""
        return pa.table([self._cells(cells) for cells in batch.itercolumns()], names=batch.column_names)

    def _cells(self, cells: Any) -> Any:
        cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        if self.kinds is None:
            return without(text_of(cells), (*MISSING_WORDS, *self.na))
        if not self.na:
            return cells
        if is_text(cells.type) or pa.types.is_dictionary(cells.type):
            return without(text_of(cells), self.na)
        values = [float(word) for word in self.na if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", word)]
        if not is_number(cells.type) or not values:
            return cells
        gone = pc.is_in(cells.cast(pa.float64(), safe=False), value_set=pa.array(values))
        return pc.if_else(gone, pa.scalar(None, cells.type), cells)


def held_table(held: Any, *, where: str, like: Table | None = None, y: Any = None) -> Table:
    """Return an Arrow table in memory as a stream; ``like`` is the table that it was read from.

    >>> held_table(pa.table({"a": [1, 2]}), where="toy").rows
    2
    """

    def read(columns: Sequence[str]) -> Iterator[Any]:
        some = held.select(list(columns))
        return (some.slice(start, BATCH_ROWS) for start in range(0, held.num_rows, BATCH_ROWS))

    if like is not None:
        return replace(like, read=read, rows=held.num_rows, files=())
    kinds = {column.name: column.type for column in held.schema}
    return Table(tuple(held.column_names), where, read, held.num_rows, kinds=kinds, y=y)


def csv_table(path: Path) -> Table:
    """Open a file of comma-separated values (tab-separated for ``.tsv``), compressed or not."""
    header = read_header(path)
    _check_quotes(path, header)
    size = path.stat().st_size * (_UNPACKED if path.suffix.lower() in (".gz", ".bz2") else 1)
    read = partial(_text_batches, path, header)
    return Table(header.names, str(path), read, size=size, notes=header.notes, files=(path,))


def _text_batches(path: Path, header: TextHeader, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a text file."""
    with (
        _named(path, header),
        # No stream of Python's: a thread of Arrow's that reads ahead of an error may outlive Python, and would abort or
        # hang at its end.
        pa.input_stream(str(path), compression=compression_of(path)) as stream,
        pyarrow.csv.open_csv(stream, **_options(header, columns)) as reader,
    ):
        for batch in reader:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


def _check_quotes(path: Path, header: TextHeader) -> None:
    """Refuse a file with a quotation mark that is never closed.

    Arrow takes the end of a file for the end of a quoted cell, however many rows the cell has swallowed. So Python
    reads such a file, too, and one more row of a known cell, which comes out as a row if all cells are closed.
    """
    with open_compressed(path, limit=None) as stream:
        if not any(b'"' in block for block in iter(partial(stream.read, 1 << 22), b"")):
            return
    token, rows, last, before = secrets.token_hex(16), 0, list[str](), csv.field_size_limit(BLOCK_BYTES)
    try:
        with open_compressed(path, limit=None) as stream, io.TextIOWrapper(stream, header.encoding, newline="") as text:
            for row in csv.reader(itertools.chain(text, ["\n", token]), delimiter=header.delimiter):
                rows, last = rows + bool(row), row
    except csv.Error:  # a cell of more than a block
        rows += 1
    finally:
        csv.field_size_limit(before)
    if last != [token]:
        number = rows - header.named
        what = f"a quotation mark in data row {number} is never closed, and swallows all rows after it"
        raise UserError(f"{path}: {what}.")


def _options(header: TextHeader, columns: Sequence[str]) -> dict[str, Any]:
    """Return how Arrow reads a file: every cell as text, on one thread, where it counts rows."""
    read = pyarrow.csv.ReadOptions(column_names=list(header.names), block_size=BLOCK_BYTES, use_threads=False)
    read.skip_rows_after_names = header.rows
    read.encoding = "utf8" if header.encoding == UNICODE else header.encoding
    parse = pyarrow.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    text = dict.fromkeys(header.names, pa.string())
    convert = pyarrow.csv.ConvertOptions(column_types=text, include_columns=list(columns))
    return {"read_options": read, "parse_options": parse, "convert_options": convert}


@contextmanager
def _named(path: Path, header: TextHeader) -> Iterator[None]:
    """Turn what Arrow cannot parse into a sentence that names the row."""
    try:
        yield
    except (MemoryError, UserError):
        raise
    except (OSError, pa.ArrowException) as error:
        text = str(error)
        if "straddling" in text:
            row = f"a row of more than {BLOCK_BYTES >> 20} MB"
            raise UserError(f"{path} has {row}: is a quotation mark in it never closed?") from error
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if ragged is None:
            raise damaged(path, error) from error
        number, expected, got = int(ragged[1]) - header.rows, ragged[2], ragged[3]
        what = f"data row {number} has {got} cells where the first line has {expected}"
        how = "make every row the same length, and quote cells that hold the separator"
        raise UserError(f"{path}: {what}: {how}.") from error


class TextHeader(NamedTuple):
    """The first line of a file."""

    names: tuple[str, ...]
    rows: int  # lines before the data, blank ones counted
    delimiter: str
    encoding: str
    notes: tuple[str, ...]
    named: bool  # whether it has names, or is a row of data already


def read_header(path: Path) -> TextHeader:
    """Return what the first line of a file says: names of columns, or that it has none, and the separator.

    A first line of numbers is taken for data, unless they count upwards like column numbers.
    """
    encoding = UNICODE if _is_unicode(path) else WESTERN
    try:
        with open_compressed(path, limit=None) as stream, io.TextIOWrapper(stream, encoding, newline="") as lines:
            first, rows = _first_line(lines, path)
            is_tsv = ".tsv" in map(str.lower, path.suffixes[-2:])
            delimiter = "\t" if is_tsv else next((mark for mark in ",;\t" if mark in first), ",")
            # A quoted name may hold a line break.
            cells = next(csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True))
            if not lines.read(1):
                raise UserError(f"{path} has a header but no rows.")
    except csv.Error as error:
        raise UserError(f"{path}: the header cannot be read ({error}): is a quotation mark never closed?") from error
    except UnicodeDecodeError as error:
        raise _not_text(path) from error
    if any(ord(mark) < 32 and mark not in "\t\r\n" for mark in "".join(cells)):  # as in UTF-16
        raise _not_text(path)
    notes = () if delimiter in (",", "\t") else (f"read with {delimiter!r} as the separator",)
    if encoding == WESTERN:
        notes = (*notes, "read as Latin-1 (Windows-1252), because it is not UTF-8")
    names = tuple(name.strip() or f"Unnamed: {position}" for position, name in enumerate(cells))
    named, numbers = True, pc.filter(pa.array(names), looks_like_number(pa.array(names))).to_pylist()
    if 2 * len(numbers) >= len(names) and _count_upwards(numbers):
        notes = (*notes, f"took the numbers of the first line for column names: {listed(names)}")
    elif 2 * len(numbers) >= len(names):
        names, rows, named = tuple(f"column_{position}" for position in range(len(names))), rows - 1, False
        notes = (*notes, "the file has no header: columns are called column_0, column_1, ...")
    return TextHeader(names, rows, delimiter, encoding, notes, named)


def _is_unicode(path: Path) -> bool:
    """Whether all of a file is text in UTF-8, which takes a pass over its bytes. One with a NUL is no text at all."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_compressed(path, limit=None) as stream, suppress(UnicodeDecodeError):
        while block := stream.read(1 << 22):
            if b"\0" in block:  # as in UTF-16, or where a disk has lost a block
                raise _not_text(path)
            decoder.decode(block)
        decoder.decode(b"", final=True)
        return True
    return False


def _not_text(path: Path) -> UserError:
    return UserError(f"{path} is not text in UTF-8: save it in UTF-8, or get the file again.")


def _first_line(lines: io.TextIOBase, path: Path) -> tuple[str, int]:
    """Return the first line that is not blank, and its number from 1."""
    for number, line in enumerate(iter(partial(lines.readline, LINE_CHARACTERS), ""), start=1):
        if len(line) == LINE_CHARACTERS:
            raise UserError(f"{path}: its first line has more than {LINE_CHARACTERS} characters; is it a table?")
        if line.strip():
            return line, number
    raise UserError(f"the file {path} is empty.")


def _count_upwards(cells: list[str]) -> bool:
    """Whether numbers can be the names of columns, such as 0, 1, 2 or 1990, 2000, rather than cells."""
    whole = [int(cell) for cell in cells if cell.isdecimal()]
    return len(whole) == len(cells) and all(earlier < later for earlier, later in itertools.pairwise(whole))
