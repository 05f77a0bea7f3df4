"""A column of dates, points in time or times of day: a number of days, and its place in the year, week and day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.encoding.cells import Encoded, missing_cell
from pinoise.data.encoding.middles import Fill
from pinoise.data.formats.arrow import first_true, is_text, text_of
from pinoise.data.options import MissingPolicy
from pinoise.errors import RowError, UserError

Cycle = Literal["year", "week", "day"]
LENGTHS: dict[Cycle, float] = {"year": 365.25, "week": 7.0, "day": 1.0}
"""Days of each cycle."""

FIRST_MONDAY = 4.0  # 1970-01-05, in days since 1970

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
FORMATS = tuple(day + time for day in _DAYS for time in _TIMES)
"""How dates may be written in text. Where a month could be a day, it is the month that comes first beside slashes."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DateColumn:
    """A column of points in time: the feature ``column`` in days since 1970, and two features for each cycle.

    A cycle is a point on a circle, so that December is beside January. Times of day have the cycle alone.
    """

    name: str
    fill: float  # days since 1970
    cycles: tuple[Cycle, ...]
    counts_days: bool  # False for times of day
    written: str  # the format of text; empty for dates that a file or a frame knows as such

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: the number, and the two of every cycle."""
        return (*([1] if self.counts_days else []), *(2 for _ in self.cycles))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        circles = [f"{self.name}:{cycle}_{axis}" for cycle in self.cycles for axis in ("sin", "cos")]
        return (*([self.name] if self.counts_days else []), *circles)

    def encode(self, column: Any, out: Floats, *, refuse_missing: bool, where: str) -> Encoded:
        """Write the column's features into ``out`` of shape (rows, features)."""
        days = days_of(column, self.name, written=self.written, where=where)
        missing = np.isnan(days)
        if missing.any() and refuse_missing:
            raise missing_cell(self.name, int(np.argmax(missing)), where)
        days[missing] = self.fill
        start = 0
        if self.counts_days:
            out[:, 0], start = days, 1
        for number, cycle in enumerate(self.cycles):
            place = start + 2 * number
            out[:, place : place + 2] = on_circle(days, cycle)
        return Encoded(missing=int(missing.sum()))


def on_circle(days: Floats, cycle: Cycle) -> Floats:
    """Return sine and cosine of the place in a cycle, shape (n, 2). Weeks begin on Monday.

    >>> on_circle(np.array([0.25, 0.5]), "day").round(6).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    offset = FIRST_MONDAY if cycle == "week" else 0.0
    whole = days if cycle == "day" else np.floor(days)
    angle = 2 * np.pi * (whole - offset) / LENGTHS[cycle]
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def is_date(kind: Any) -> bool:
    """Whether an Arrow type holds dates, points in time or times of day.

    >>> is_date(pa.date32()), is_date(pa.timestamp("us", tz="UTC")), is_date(pa.time32("s")), is_date(pa.int64())
    (True, True, True, False)
    """
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def date_format(text: Any) -> str | None:
    """Return the format in which every cell of text is a date, None without one.

    >>> date_format(pa.array(["31.12.2024", "01.02.2025"])), date_format(pa.array(["Rome"]))
    ('%d.%m.%Y', None)
    """
    cells = text_of(text).drop_null()
    return next(iter(fitting_formats(cells, FORMATS)), None) if len(cells) else None


def common_format(pieces: Iterable[Any]) -> str:
    """Return the format in which every cell of a column of text that comes in pieces is a date, or else the first one.

    >>> common_format([pa.array(["01/02/2025"]), pa.array(["31/12/2024", None])])
    '%d/%m/%Y'
    """
    formats = list(FORMATS)
    for piece in pieces:
        cells = text_of(piece).drop_null()
        formats = fitting_formats(cells, formats) if len(cells) else formats
    return formats[0] if formats else FORMATS[0]


def fitting_formats(cells: Any, formats: Sequence[str]) -> list[str]:
    """Return those of some formats in which every cell is a date; none of them may be missing."""
    likely = [form for form in formats if _parsed(cells[:1], form).null_count == 0]
    return [form for form in likely if _parsed(cells, form).null_count == 0]


def _parsed(text: Any, written: str) -> Any:
    return pc.strptime(text, format=written, unit="s", error_is_null=True)


def days_of(column: Any, name: str, *, written: str, where: str) -> Floats:
    """Return days since 1970, NaN where missing; text that is no date is an error that names its row."""
    kind = column.type
    if is_text(kind) or pa.types.is_null(kind):
        text = text_of(column.cast(pa.large_string()))
        form = written or date_format(text) or FORMATS[0]
        column = _parsed(text, form)
        stray = first_true(pc.and_(pc.is_null(column), pc.is_valid(text)))
        if stray >= 0:
            raise RowError(
                f"{where}: column {name!r} holds dates, but data row ",
                stray,
                f" holds {text[stray].as_py()!r}: write it as {form}, or leave it empty.",
            )
    elif not is_date(kind):
        raise UserError(f"{where}: column {name!r} held dates in training and holds {kind} here: give the same column.")
    if pa.types.is_time(column.type):
        micro = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    else:
        micro = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    micro = micro.combine_chunks() if isinstance(micro, pa.ChunkedArray) else micro
    return np.array(micro.to_numpy(zero_copy_only=False), dtype=np.float64) / 86_400e6


class DateStudy:
    """What is learned from a column of dates that comes in pieces: what fills gaps, and which cycles it has."""

    def __init__(self, name: str, *, written: str, counts_days: bool, missing: MissingPolicy, where: str) -> None:
        """Learn the column of this name; ``written`` is the format of text, empty for dates that the source knows."""
        self._name, self._written, self._where = name, written, where
        self._counts_days = counts_days
        self._fill = Fill("mean" if missing == "mean" else "median")
        wanted: tuple[Cycle, ...] = ("year", "week", "day") if counts_days else ("day",)
        self._seen: dict[Cycle, tuple[Floats, Floats]] = {
            cycle: (np.full(2, np.inf), np.full(2, -np.inf)) for cycle in wanted
        }

    def add(self, column: Any) -> None:
        """Take the next rows."""
        days = days_of(column, self._name, written=self._written, where=self._where)
        present = days[~np.isnan(days)]
        self._fill.add(present)
        for cycle, (low, high) in self._seen.items() if len(present) else ():
            places = on_circle(present, cycle)
            self._seen[cycle] = np.minimum(low, places.min(axis=0)), np.maximum(high, places.max(axis=0))

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        return self._fill.again()

    def learned(self) -> DateColumn | None:
        """Return the column, None where no cell holds a date."""
        if not self._fill.count:
            return None
        cycles = tuple(cycle for cycle, (low, high) in self._seen.items() if (high - low).max() > 1e-9)
        return DateColumn(self._name, self._fill.value, cycles, self._counts_days or not cycles, self._written)
