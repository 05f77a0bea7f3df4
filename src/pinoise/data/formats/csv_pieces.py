"""CSV files larger than memory: the types of their columns in one pass, then typed pieces in every further one."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.arrow import is_text
from pinoise.data.formats.raw import Table, check_names
from pinoise.data.formats.tables import (
    WESTERN,
    Header,
    check_unicode,
    csv_options,
    not_unicode,
    parse_problem,
    read_header,
    without_missing_words,
)
from pinoise.data.formats.unchanged import FileState, states_of
from pinoise.data.messages import damaged
from pinoise.errors import UserError

_TEXT = pa.string()


@dataclass(frozen=True)
class CsvFile(Table):
    """The rows of a CSV file, in the types that all rows allow: those that it would have in memory."""

    state: FileState
    header: Header
    types: Mapping[str, Any]
    rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.header.names

    def kind_of(self, name: str) -> Any:
        """Return the Arrow type of a column."""
        return pa.large_string() if is_text(self.types[name]) else self.types[name]

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield tables of bounded size with their first row; a file that has changed since is an error."""
        first = 0
        self.state.check()
        for batch in _batches(self.state.path, self.header, self.types, columns):
            cells = [without_missing_words(cell) if is_text(cell.type) else cell for cell in batch.itercolumns()]
            yield first, pa.table(cells, names=list(columns))
            first += len(batch)
        self.state.check()
        if first != self.rows:
            raise self.state.changed()


def open_csv(path: Path, *, text: Sequence[str] = ()) -> CsvFile:
    """Open a CSV file after one pass that finds the types of its columns; those in ``text`` are not guessed."""
    try:
        return _opened(path, read_header(path), text)
    except UnicodeDecodeError:
        pass
    try:
        return _opened(path, read_header(path, WESTERN), text)
    except UnicodeDecodeError as error:
        raise not_unicode(path) from error


def _opened(path: Path, header: Header, text: Sequence[str]) -> CsvFile:
    (state,) = states_of([path])
    check_names(header.names, where=path)
    found: dict[str, _Kinds] = {name: _Kinds() for name in header.names}
    rows = 0
    for batch in _batches(path, header, dict.fromkeys(header.names, _TEXT), header.names):
        rows += len(batch)
        guessed = _guessed(batch, header, text)
        for name, kinds in found.items():
            kinds.add(guessed.column(name))
    if rows == 0:
        raise UserError(f"{path} has a header but no rows.")
    state.check()
    types = {name: _TEXT if name in text else kinds.common for name, kinds in found.items()}
    return CsvFile(state, header, types, rows, header.notes)


def _batches(path: Path, header: Header, types: Mapping[str, Any], columns: Sequence[str]) -> Iterator[Any]:
    with _errors(path, header), open_compressed(path, limit=None) as stream:
        options = csv_options(header, types, columns=columns)
        with pyarrow.csv.open_csv(stream, **options) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


@contextmanager
def _errors(path: Path, header: Header) -> Iterator[None]:
    try:
        yield
    except (MemoryError, UnicodeDecodeError, UserError):
        raise
    except pa.ArrowInvalid as error:
        check_unicode(error)
        raise parse_problem(path, header, error) from error
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def _guessed(batch: Any, header: Header, text: Sequence[str]) -> Any:
    """Return a piece of text in the types that Arrow finds for it."""
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(batch, buffer, pyarrow.csv.WriteOptions(include_header=False))
    buffer.seek(0)
    plain = Header(header.names, 0, ",", "utf-8-sig", ())
    return pyarrow.csv.read_csv(buffer, **csv_options(plain, dict.fromkeys(text, _TEXT)))


class _Kinds:
    """The type that a column has whose pieces have these ones, by the rules of Arrow."""

    def __init__(self) -> None:
        self._seen: list[Any] = []
        self._binary = True  # all whole numbers so far are 0 or 1, which are also written for false and true

    def add(self, column: Any) -> None:
        kind = column.type
        if kind not in self._seen:
            self._seen.append(kind)
        if pa.types.is_integer(kind) and self._binary:
            bounds = pc.min_max(column).as_py()
            self._binary = bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] <= 1)

    @property
    def common(self) -> Any:
        return reduce(self._joined, self._seen, pa.null())

    def _joined(self, one: Any, other: Any) -> Any:
        pair = {one, other}
        if len(pair) == 1 or pa.null() in pair:
            return other if one == pa.null() else one
        if pair == {pa.int64(), pa.float64()}:
            return pa.float64()
        if pair == {pa.int64(), pa.bool_()} and self._binary:
            return pa.bool_()
        if all(kind in _MOMENTS for kind in pair):
            return max(pair, key=_MOMENTS.index)
        return _TEXT


_MOMENTS = [pa.date32(), pa.timestamp("s"), pa.timestamp("ns")]
