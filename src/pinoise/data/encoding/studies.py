"""What a column of a training table becomes, learned in passes over pieces of it: the whole need never be in memory.

A study takes the pieces of a column in order, as often as it asks for, and then says what was learned, or which study
comes next. A table in memory is one piece, so that the same data gives the same columns however it is read.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.encoding.columns import (
    MISSING,
    OTHER,
    CategoricalColumn,
    Column,
    NumericColumn,
    numbers_of,
    stray_cell,
)
from pinoise.data.encoding.dates import FORMATS, DateStudy, fitting_formats, is_date
from pinoise.data.encoding.identifiers import RowNames, counts_on
from pinoise.data.encoding.middles import Fill
from pinoise.data.encoding.numbers import STYLES, Style, is_written
from pinoise.data.encoding.tallies import Tally
from pinoise.data.encoding.texts import Words, is_prose
from pinoise.data.formats.arrow import is_number, is_text, text_of
from pinoise.data.messages import counted
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError

MOSTLY = 0.5  # a text column with this share of numbers is a numeric column with mistakes in it
IDENTIFIER = 0.9  # share of distinct values above which a long list of categories names rows, not groups


class Learned(NamedTuple):
    """What a column becomes, None where it carries no feature, and what is said about it."""

    column: Column | None
    notes: tuple[str, ...] = ()
    empty: bool = False
    constant: bool = False
    as_numbers: bool = False  # its text was read as plain numbers


EMPTY = Learned(None, empty=True)


class Study(ABC):
    """The study of one column: ``add`` every piece, then ``again`` says whether all pieces are wanted once more."""

    def __init__(self, name: str, options: ReadOptions, where: str) -> None:
        """Study the column of this name; ``where`` is what messages call its table."""
        self.name, self.options, self.where = name, options, where

    @abstractmethod
    def add(self, cells: Any) -> None:
        """Take the next rows."""

    @abstractmethod
    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""

    @abstractmethod
    def learned(self) -> Learned | Study:
        """Return what was learned, or the study that says more."""

    @property
    def kept(self) -> bool:
        """Whether the user wants the column even if its values name the rows."""
        return self.name in (*self.options.keep, *self.options.categorical)


class NumberStudy(Study):
    """A column of numbers, which may be written as text."""

    def __init__(self, name: str, options: ReadOptions, where: str, *, style: Style | None = None) -> None:
        """Study numbers; ``style`` is how they are written where they are text."""
        super().__init__(name, options, where)
        self._style = style
        self._rows, self._first_number = 0, None
        self._fill = Fill(options.missing)
        self._counts_rows = name.startswith(("Unnamed: ", "__index_level_")) and not self.kept
        self._names: RowNames | None = None if self.kept or style is not None else RowNames(name)
        self._waiting: tuple[Fill | RowNames, ...] = ()

    def add(self, cells: Any) -> None:
        """Take the next rows."""
        if not pa.types.is_integer(cells.type):
            self._names, self._counts_rows = None, False
        if self._names in self._waiting or (self._names is not None and not self._waiting):
            self._names.add(cells)
        if self._waiting and self._fill not in self._waiting:
            return
        values = numbers_of(cells, self.name, style=self._style or "plain", where=self.where)
        self._fill.add(values[~np.isnan(values)])
        if self._waiting:
            return
        if self._counts_rows:
            self._first_number = cells[0].as_py() if self._rows == 0 else self._first_number
            self._counts_rows = counts_on(cells, before=self._rows, first=self._first_number)
        self._rows += len(values)

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        asked = self._waiting or (self._fill, *([] if self._names is None else [self._names]))
        self._waiting = tuple(part for part in asked if part.again())
        return bool(self._waiting)

    def learned(self) -> Learned:
        """Return the column, unless its numbers only name the rows."""
        if self._counts_rows and self._rows > 1:
            return Learned(None, (f"dropped the column {self.name!r}, which only counts the rows",))
        if self._names is not None and self._names.names_rows:
            keeps = _how_to_keep(self.name)
            return Learned(None, (f"dropped the column {self.name!r}, whose numbers name the rows; {keeps}",))
        fill = self._fill
        if not fill.count:
            return EMPTY
        constant = fill.low == fill.high and (fill.count == self._rows or fill.value == fill.low)
        column = NumericColumn(self.name, fill.value, self._style or "plain")
        return Learned(column, self._notes(), constant=constant, as_numbers=self._style == "plain")

    def _notes(self) -> tuple[str, ...]:
        if self._style == "comma":
            return (f"took the commas in the numbers of column {self.name!r} for decimal points",)
        if self._style == "point":
            return (f"read the amounts of column {self.name!r} as numbers, without their signs",)
        return ()


class DatesStudy(Study):
    """A column of dates, points in time or times of day."""

    def __init__(self, name: str, options: ReadOptions, where: str, *, written: str = "", times: bool = False) -> None:
        """Study dates; ``written`` is the format of text, and ``times`` says that they are times of day."""
        super().__init__(name, options, where)
        self._written = written
        self._dates = DateStudy(name, written=written, counts_days=not times, missing=options.missing, where=where)

    def add(self, cells: Any) -> None:
        """Take the next rows."""
        self._dates.add(cells)

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        return self._dates.again()

    def learned(self) -> Learned:
        """Return the column."""
        note = f"read the text of column {self.name!r} as dates, {self._written}"
        column = self._dates.learned()
        return EMPTY if column is None else Learned(column, (note,) if self._written else ())


class CategoryStudy(Study):
    """A column of names: text, truth values, or what the user calls categories."""

    kind: Literal["text", "boolean"] = "text"

    def __init__(self, name: str, options: ReadOptions, where: str) -> None:
        """Study names."""
        super().__init__(name, options, where)
        self._rows = self._missing = self._null = self._spaces = 0
        self._passes = 0
        self._tally = Tally(most=options.max_categories)

    def add(self, cells: Any) -> None:
        """Take the next rows."""
        text = text_of(cells)
        counts = pc.value_counts(text.drop_null())
        values, times = counts.field(0), counts.field(1)
        self._tally.add(values.to_pylist(), times.to_pylist())
        if self._passes == 0:
            self._look(text, values, times)
            spaces = pc.multiply(pc.count_substring_regex(values, r"\s+").cast(pa.int64()), times)
            self._spaces += pc.sum(spaces).as_py() or 0
            self._rows, self._null = self._rows + len(cells), self._null + cells.null_count
            self._missing += text.null_count

    def _look(self, text: Any, values: Any, times: Any) -> None:
        """Look at the cells, and at their different values with how often each comes, in the first pass."""

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        self._passes += 1
        return self._tally.again()

    def learned(self) -> Learned | Study:
        """Return the categories, at most the frequent ones; no column where the values name the rows."""
        if self._null == self._rows:
            return EMPTY
        tally, most = self._tally, self.options.max_categories
        if not self.kept and tally.distinct > most and tally.distinct >= IDENTIFIER * tally.cells:
            return Learned(None, (self._why_dropped(),))
        missing, other = self._missing > 0, tally.distinct > most
        names = sorted(value for value, _ in tally.top)
        # A category that is itself called "missing" or "other" means the same and is not repeated.
        names += [extra for extra, used in ((MISSING, missing), (OTHER, other)) if used and extra not in names]
        column = CategoricalColumn(self.name, tuple(names), self.kind, missing=missing, other=other)
        rest = f"{self.name}=other"
        note = f"kept the {most} most frequent values of column {self.name!r}; the rest is {rest!r}"
        return Learned(column, (note,) if other else (), constant=len(names) == 1 and not other)

    def _why_dropped(self) -> str:
        name = self.name
        if is_prose(self._spaces, self._tally.cells):
            how = f"--text {shlex.quote(name)} (text=[{name!r}])"
            return f"left out the text of column {name!r}: {how} makes features of its words"
        return (
            f"dropped the column {name!r}: nearly all of its {self._rows - self._null} values differ, as in an "
            f"identifier; {_how_to_keep(name)}"
        )


class TruthStudy(CategoryStudy):
    """A column of truth values."""

    kind = "boolean"


class TextStudy(CategoryStudy):
    """A column of text, which may turn out to be numbers or dates."""

    def __init__(self, name: str, options: ReadOptions, where: str) -> None:
        """Study text."""
        super().__init__(name, options, where)
        self._numbers: dict[Style, int] = dict.fromkeys(STYLES, 0)
        self._stray: dict[Style, tuple[int, str]] = {}  # row and cell of the first that is no number in a style
        self._formats = list(FORMATS)

    def _look(self, text: Any, values: Any, times: Any) -> None:
        if not len(values):
            return
        for style in STYLES:
            written = is_written(values, style)
            self._numbers[style] += pc.sum(times.filter(written)).as_py() or 0
            if style not in self._stray and not pc.all(written).as_py():
                cell = values.filter(pc.invert(written))[0]
                self._stray[style] = self._rows + pc.index(text, cell).as_py(), cell.as_py()
        self._formats = fitting_formats(values, self._formats)

    def learned(self) -> Learned | Study:
        """Return the categories, or how numbers or dates are studied."""
        cells = self._tally.cells
        style: Style = max(STYLES, key=lambda style: self._numbers[style])
        if cells and self._numbers[style] >= MOSTLY * cells:
            if style in self._stray:
                raise stray_cell(self.name, *self._stray[style], self.where)
            return NumberStudy(self.name, self.options, self.where, style=style)
        if cells and self._formats:
            return DatesStudy(self.name, self.options, self.where, written=self._formats[0])
        return super().learned()


class WordStudy(Study):
    """A column of free text, whose frequent words become features."""

    def __init__(self, name: str, options: ReadOptions, where: str) -> None:
        """Study words."""
        super().__init__(name, options, where)
        self._words = Words()

    def add(self, cells: Any) -> None:
        """Take the next rows."""
        self._words.add(cells)

    def again(self) -> bool:
        """One pass is enough."""
        return False

    def learned(self) -> Learned:
        """Return the words."""
        column = self._words.learned(self.name)
        if column is None:
            return Learned(None, (f"dropped the text of column {self.name!r}: none of its words is in two rows",))
        words = counted(len(column.words), "most frequent word")
        return Learned(column, (f"made TF-IDF features of the {words} of column {self.name!r}",))


def study_of(name: str, kind: Any, options: ReadOptions, where: str) -> Study | Learned:
    """Return the study of a column of an Arrow type; a column without any value needs none."""
    if name in options.text:
        return WordStudy(name, options, where)
    if pa.types.is_null(kind):
        return EMPTY
    if pa.types.is_boolean(kind):
        return TruthStudy(name, options, where)
    if pa.types.is_dictionary(kind):
        return CategoryStudy(name, options, where)
    if name in options.categorical and (is_number(kind) or is_date(kind) or is_text(kind)):
        return CategoryStudy(name, options, where)
    if is_number(kind):
        return NumberStudy(name, options, where)
    if is_date(kind):
        return DatesStudy(name, options, where, times=pa.types.is_time(kind))
    if is_text(kind):
        return TextStudy(name, options, where)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise UserError(f"{where}: column {name!r} is not text in UTF-8: save the file in UTF-8 or drop the column.")
    raise UserError(
        f"{where}: column {name!r} is of type {kind}, which is neither a number nor a category: turn it into numbers "
        "or drop the column."
    )


def _how_to_keep(name: str) -> str:
    """Return what keeps a column, as a shell takes it.

    >>> _how_to_keep("id"), _how_to_keep("Order No")
    ("--set data.keep=id (keep=['id']) keeps it", "--set 'data.keep=Order No' (keep=['Order No']) keeps it")
    """
    return f"--set {shlex.quote(f'data.keep={name}')} (keep=[{name!r}]) keeps it"
