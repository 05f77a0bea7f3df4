"""What the columns of a table are, by the rows that are looked at, and which only name rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.options import ReadOptions
from pinoise.data.table.batches import Table
from pinoise.data.table.categories import MISSING, OTHER, CategoricalColumn, are_truths, most_frequent
from pinoise.data.table.cells import Floats, are_codes, column_of, first_true, is_number, is_text, text_of
from pinoise.data.table.dates import DateColumn, fitting_format, is_date, learn_dates
from pinoise.data.table.labels import typed
from pinoise.data.table.numbers import STYLES, NumericColumn, Style, is_written, learn_numbers, no_number, numbers_of
from pinoise.data.table.text import TextColumn, learn_words
from pinoise.errors import UserError, counted, listed

Column = NumericColumn | CategoricalColumn | DateColumn | TextColumn
"""What a column of a table becomes: its ``features``, and in ``sizes`` how many of them belong together each time."""

LEARNING_ROWS = 1 << 18
"""The most rows that the columns of a table are learned from; of a wider one fewer, with 2²³ cells in all."""

_LEARNING_CELLS, _LEAST_ROWS = 1 << 23, 1 << 12
_SPARE = 1.25  # times the rows that are looked at are kept before the surplus is dropped

MOSTLY = 0.5  # a text column with this share of numbers is a numeric column with mistakes in it
FEW_VALUES = 20  # unless so few values differ, some of them no numbers: those are categories, such as 2, 3, 4, 5more
IDENTIFIER = 0.9  # share of distinct values above which a long list of categories names rows, not groups
_FREQUENT = 0.01  # share of cells from which a question mark is worth a note

LEAST_NAMED = 50  # rows; in a shorter table, numbers that all differ may well be measurements
_ID = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|key|index|row)$|[a-z](Id|ID)$|^(ID|Id)$", re.IGNORECASE)
_LONG = 10**13  # from 14 digits on, a whole number that never repeats is no count
_MICROSECONDS = (9 * 10**14, 42 * 10**14)  # since 1970, from 1998 to 2103


class TableSample(NamedTuple):
    """Some rows of a table, all labels, and how many rows there are."""

    part: Any
    numbers: npt.NDArray[np.int64]  # of the rows in the part
    labels: Any
    rows: int


def look(table: Table, wanted: Sequence[str], label: str | None) -> TableSample:
    """Read a table once, and keep all rows of a small one, and as many random ones of a large one as are looked at."""
    most = min(LEARNING_ROWS, max(_LEAST_ROWS, _LEARNING_CELLS // max(1, len(wanted))))
    random, limit, rows = np.random.default_rng(0), 1.0, 0
    parts, labels = list[Any](), list[Any]()
    keys, numbers = np.empty(0), np.empty(0, np.int64)
    for first, batch in table.uncleaned([*wanted, *([] if label is None else [label])]):
        rows = first + batch.num_rows
        labels += [] if label is None else [table.cleaned(batch.select([label])).column(0)]
        drawn = random.random(batch.num_rows)
        chosen = np.flatnonzero(drawn < limit)
        some = batch.select(list(wanted))
        parts.append(table.cleaned(some if len(chosen) == len(drawn) else some.take(pa.array(chosen))))
        keys, numbers = np.append(keys, drawn[chosen]), np.append(numbers, first + chosen)
        if len(keys) > _SPARE * most:
            limit, parts, keys, numbers = _pruned(parts, keys, numbers, most)
    if len(keys) > most:
        _, parts, keys, numbers = _pruned(parts, keys, numbers, most)
    cells = pa.concat_arrays([column.combine_chunks() for column in labels]) if labels else None
    return TableSample(pa.concat_tables(parts, promote_options="permissive"), numbers, cells, rows)


def _pruned(parts: list[Any], keys: Floats, numbers: npt.NDArray[np.int64], most: int) -> tuple[Any, ...]:
    """Return the ``most`` rows of the smallest keys, after the key that is too large."""
    limit = float(np.partition(keys, most)[most])
    below = np.flatnonzero(keys < limit)
    part = pa.concat_tables(parts, promote_options="permissive").take(pa.array(below)).combine_chunks()
    return limit, [part], keys[below], numbers[below]


class LearnedColumn(NamedTuple):
    """What a column becomes, None where it carries no feature, and what is said about it."""

    column: Column | None
    notes: tuple[str, ...] = ()
    empty: bool = False
    constant: bool = False
    as_numbers: bool = False  # its text, of a table that has types, was read as plain numbers


EMPTY = LearnedColumn(None, empty=True)


class ColumnSample(NamedTuple):
    """A column as it is looked at: some of its cells, and what is known of the whole."""

    name: str
    cells: Any  # an Arrow array
    options: ReadOptions
    table: Table  # that it is a column of
    rows: int  # of the whole column

    @property
    def where(self) -> str:
        """What messages call it."""
        return column_of(self.table.where, self.name)

    @property
    def kept(self) -> bool:
        """Whether the user wants the column even if its values name the rows."""
        return self.name in (*self.options.keep, *self.options.categorical)

    @property
    def how_to_keep(self) -> str:
        """What keeps the column, as a shell takes it."""
        return f"--keep {shlex.quote(self.name)} (keep=[{self.name!r}]) keeps it"


def learn_column(looked: ColumnSample) -> LearnedColumn:
    """Return what a column becomes.

    Numbers stay numbers. Text and truth values become categories, and so do the numbers of the columns that
    ``options.categorical`` names. Dates become days and cycles, and the columns that ``options.text`` names TF-IDF of
    their words.
    """
    name, cells, options, kind = looked.name, looked.cells, looked.options, looked.cells.type
    if name in options.text:
        return _words(looked)
    if pa.types.is_null(kind) or cells.null_count == len(cells):
        return EMPTY
    if pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
        return _names(looked, text_of(cells), truths=pa.types.is_boolean(kind))
    if name in options.categorical and (is_number(kind) or is_date(kind) or is_text(kind)):
        return _names(looked, text_of(cells))
    if is_number(kind):
        return _numbers(looked)
    if is_date(kind):
        return _dates(looked)
    if is_text(kind):
        return _text(looked, text_of(cells))
    what = f"of type {kind}, which is neither a number nor a category"
    raise UserError(f"{looked.where} is {what}: turn it into numbers or text, or drop the column.")


def _words(looked: ColumnSample) -> LearnedColumn:
    name, column = looked.name, learn_words(looked.name, looked.cells)
    if column is None:
        return LearnedColumn(None, (f"dropped the text of column {name!r}: none of its words is in two rows",))
    words = counted(len(column.words), "most frequent word")
    return LearnedColumn(column, (f"made TF-IDF features of the {words} of column {name!r}",))


def _text(looked: ColumnSample, text: Any) -> LearnedColumn:
    """Return what text becomes: numbers, dates or categories, as all of its cells allow."""
    present = text.drop_null()
    if not len(present):
        return EMPTY
    if are_codes(present):
        return _names(looked, text)
    written = {style: is_written(present, style) for style in STYLES}
    style: Style = max(STYLES, key=lambda style: pc.sum(written[style]).as_py())
    share = pc.mean(written[style]).as_py()
    strays = present.filter(pc.invert(written[style]))
    if share == 1:
        return _numbers(looked, style)
    if share >= MOSTLY:
        if pc.count_distinct(present).as_py() > FEW_VALUES:
            stray = strays[0].as_py()
            raise no_number(first_true(pc.equal(text, stray)), stray, looked.where)
        note = f"took column {looked.name!r} for categories: {listed(pc.unique(strays).to_pylist())} is no number"
        names = _names(looked, text)
        return names._replace(notes=(note, *names.notes))
    if share == 0 and (written_as := fitting_format(present)):
        return _dates(looked, written_as)
    return _names(looked, text, truths=are_truths(present))


def _numbers(looked: ColumnSample, style: Style = "plain") -> LearnedColumn:
    """Return a column of numbers, unless they only name the rows."""
    name = looked.name
    values = numbers_of(looked.cells, style=style, where=looked.where)
    present = values[~np.isnan(values)]
    if not len(present):
        return EMPTY
    written = is_text(looked.cells.type)
    if not looked.kept and style == "plain":
        whole = typed(looked.cells) if written else looked.cells
        if why := names_rows(name, whole, rows=looked.rows, first=name == looked.table.names[0]):
            return LearnedColumn(None, (f"dropped the column {name!r}, {why}; {looked.how_to_keep}",))
    column = learn_numbers(name, values, style, looked.options)
    filled = len(present) == len(values) or (column.fill == present[0] and not column.marked)
    constant = present.min() == present.max() and filled
    notes = [f"took the commas in the numbers of column {name!r} for decimal points"] if style == "comma" else []
    notes += [f"read the amounts of column {name!r} as numbers, without their signs"] if style == "point" else []
    as_numbers = written and style == "plain" and looked.table.kinds is not None
    return LearnedColumn(column, tuple(notes), constant=bool(constant), as_numbers=as_numbers)


def names_rows(name: str, column: Any, *, rows: int, first: bool = False) -> str:
    """Return why numbers name rows rather than measure something, or nothing where they may be a measurement.

    They are whole and all differ, none is missing, and they are the first column and have no name, or count the rows in
    any order, or are called an id, or have 14 digits and more and are no times in microseconds or nanoseconds.

    Args:
        name: of the column.
        column: its cells, of all rows or of some.
        rows: how many rows there are in all.
        first: whether it is the first column of the table.

    >>> names_rows("row", pa.array(range(1, 101)), rows=100), names_rows("age", pa.array([20, 30] * 50), rows=100)
    ('whose numbers name the rows', '')
    >>> names_rows("x", pa.array(range(0, 200, 2)), rows=100)
    ''
    """
    if len(column) < 2 or not pa.types.is_integer(column.type) or column.null_count:
        return ""
    if pc.count_distinct(column).as_py() < len(column):
        return ""
    if first and name.startswith(("Unnamed: ", "__index_level_")):
        return "an index: it has no name, and its whole numbers all differ"
    bounds = pc.min_max(column).as_py()
    low, high = bounds["min"], bounds["max"]
    # Some rows of many hardly have the first and the last of all.
    counts = high - low < rows and high - low + 1 >= rows * (1 - 32 / len(column) * (len(column) < rows))
    times = any(_MICROSECONDS[0] * unit <= low and high <= _MICROSECONDS[1] * unit for unit in (1, 1000))
    named = counts or _ID.search(name) or (low >= _LONG and not times)
    return "whose numbers name the rows" if named and len(column) >= LEAST_NAMED else ""


def _dates(looked: ColumnSample, written: str = "") -> LearnedColumn:
    """Return a column of dates, points in time or times of day; ``written`` is the format of text."""
    column = learn_dates(looked.name, looked.cells, written=written, missing=looked.options.missing, where=looked.where)
    plain = looked.table.kinds is None and written.startswith(("%Y-%m-%d", "ISO", "%H"))
    note = f"read the text of column {looked.name!r} as dates, {written}"
    return EMPTY if column is None else LearnedColumn(column, (note,) if written and not plain else ())


def _names(looked: ColumnSample, text: Any, *, truths: bool = False) -> LearnedColumn:
    """Return the categories, at most the frequent ones; no column where the values name the rows."""
    name, most = looked.name, looked.options.max_categories
    text = pc.utf8_lower(text) if truths else text
    present, distinct = len(text) - text.null_count, pc.count_distinct(text).as_py()
    if not present:
        return EMPTY
    if not looked.kept and distinct > most and distinct >= IDENTIFIER * present:
        why = f"nearly all of its {present} values differ, as in an identifier or free text"
        how = f"{looked.how_to_keep}, and --text {shlex.quote(name)} (text=[{name!r}]) makes features of its words"
        return LearnedColumn(None, (f"dropped the column {name!r}: {why}; {how}",))
    missing, other = text.null_count > 0, distinct > most
    names = most_frequent(text, most)
    # A category that is itself called "missing" or "other" means the same and is not repeated.
    names += [extra for extra, used in ((MISSING, missing), (OTHER, other)) if used and extra not in names]
    column = CategoricalColumn(name, tuple(names), "boolean" if truths else "text", missing=missing, other=other)
    rest = f"{name}=other"
    notes = [f"kept the {most} most frequent values of column {name!r}; the rest is {rest!r}"] if other else []
    questions = pc.sum(pc.equal(text, "?")).as_py() or 0
    if questions >= max(2, _FREQUENT * len(text)):
        notes.append(f"column {name!r} has '?' in {counted(questions, 'cell')}: --na '?' (na=['?']) makes them missing")
    return LearnedColumn(column, tuple(notes), constant=len(names) == 1 and not other)


def notes_on(found: dict[str, LearnedColumn]) -> list[str]:
    """Return the notes on all columns."""
    notes = [note for learned in found.values() for note in learned.notes]
    if as_numbers := [name for name, learned in found.items() if learned.as_numbers]:
        notes.append(f"read the text of {counted(len(as_numbers), 'column')} as numbers: {listed(as_numbers)}")
    if empty := [name for name, learned in found.items() if learned.empty]:
        notes.append(f"dropped {counted(len(empty), 'column')} without any value: {listed(empty)}")
    if constant := [name for name, learned in found.items() if learned.constant]:
        verb = "is" if len(constant) == 1 else "are"
        notes.append(f"{counted(len(constant), 'column')} {verb} constant: {listed(constant)}")
    return notes
