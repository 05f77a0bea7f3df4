"""A column of dates, points in time or times of day: a number of days, and its place in the year, week and day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.options import MissingPolicy
from pinoise.data.table.cells import CellCounts, Floats, first_true, is_text, other_kind, stray_cell, text_of
from pinoise.data.table.numbers import fill_value, needs_double

Cycle = Literal["year", "week", "day"]
LENGTHS: dict[Cycle, float] = {"year": 365.25, "week": 7.0, "day": 1.0}
"""Days of each cycle."""

FIRST_MONDAY = 4.0  # 1970-01-05, in days since 1970

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
_CLOCKS = ("%H:%M:%S", "%H:%M")  # times of day
ISO, ZONED = "ISO 8601", "ISO 8601 with a zone"
_MOMENT = r"^\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?"
_CASTS = {  # of text that looks so
    ISO: (rf"{_MOMENT}$", pa.timestamp("us")),
    ZONED: (rf"{_MOMENT}(Z|[+-]\d\d(:?\d\d)?)$", pa.timestamp("us", "UTC")),
}
_SAFE = (ISO, ZONED, *_CLOCKS)
FORMATS = (*(day + time for day in _DAYS for time in _TIMES), ISO, ZONED, *_CLOCKS)
"""How dates may be written in text. Where a month could be a day, it is the month that comes first beside slashes."""

_DAY = 86_400e6  # microseconds


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
    precise: bool = False  # whether single precision would lose digits that matter

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: the number, and the two of every cycle."""
        return (*([1] if self.counts_days else []), *(2 for _ in self.cycles))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        circles = [f"{self.name}:{cycle}_{axis}" for cycle in self.cycles for axis in ("sin", "cos")]
        return (*([self.name] if self.counts_days else []), *circles)

    def encode(self, column: Any, out: Floats, *, where: str) -> CellCounts:
        """Write the column's features into ``out`` of shape (rows, features)."""
        days = days_of(column, written=self.written, where=where)
        missing = np.isnan(days)
        days[missing] = self.fill
        out[:, : self.counts_days] = days[:, None]
        for place, cycle in enumerate(self.cycles):
            start = self.counts_days + 2 * place
            out[:, start : start + 2] = on_circle(days, cycle)
        return CellCounts(missing=int(missing.sum()))

    def decode(self, features: Floats, column: Any) -> Any:
        """Return features as cells of the type that ``column`` has, whose gaps stay gaps; a cycle follows its date."""
        gaps = np.isnan(days_of(column, written=self.written, where=""))
        days = features[:, 0] if self.counts_days else np.arctan2(features[:, 0], features[:, 1]) / (2 * np.pi) % 1
        if "day" not in self.cycles and self.counts_days:  # training had whole days alone
            days = np.floor(days)
        micro, kind = pa.array(np.rint(days * _DAY).astype(np.int64), mask=gaps), column.type
        if pa.types.is_time(kind):
            return micro.cast(pa.time64("us")).cast(kind, safe=False)
        if pa.types.is_date32(kind):
            return pa.array(np.floor(days).astype(np.int32), mask=gaps).cast(kind)
        moments = micro.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)))
        if is_text(kind):
            form = "%Y-%m-%dT%H:%M:%S" if self.written in (ISO, ZONED) else self.written
            return pc.strftime(moments.cast(pa.timestamp("s"), safe=False), form).cast(kind)
        return moments.cast(kind, safe=False)


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


def fitting_format(text: Any, formats: Sequence[str] = FORMATS) -> str | None:
    """Return the first format in which every cell of text is a date, None without one; missing cells are in any.

    >>> fitting_format(pa.array(["31.12.2024", "01.02.2025", None])), fitting_format(pa.array(["Rome"]))
    ('%d.%m.%Y', None)
    """
    cells = text_of(text).drop_null()
    fits = (form for form in formats if not _parsed(cells[:1], form).null_count + _parsed(cells, form).null_count)
    return next(fits, None)


def _parsed(text: Any, form: str) -> Any:
    """Return text as dates or times of day, null where it is none."""
    if form not in _CASTS:
        moments = pc.strptime(text, format=form, unit="s", error_is_null=True)
        return moments.cast(pa.time32("s")) if form in _CLOCKS else moments
    pattern, kind = _CASTS[form]
    likely = pc.if_else(pc.match_substring_regex(text, pattern), text, pa.scalar(None, text.type))
    try:
        return likely.cast(kind)
    except pa.ArrowInvalid:  # of a day that there is not, such as the 31st of April
        return pa.array([_moment(cell, kind) for cell in likely], kind)


def _moment(cell: Any, kind: Any) -> Any:
    try:
        return cell.cast(kind)
    except pa.ArrowInvalid:
        return None


def days_of(column: Any, *, written: str, where: str) -> Floats:
    """Return days since 1970, NaN where missing; text that is no date is an error that names its row."""
    kind = column.type
    if is_text(kind) or pa.types.is_null(kind):
        text = text_of(column.cast(pa.large_string()))
        form = written or fitting_format(text, _SAFE) or ISO  # a slash would not say which number is the month
        column = _parsed(text, form)
        stray = first_true(pc.and_(pc.is_null(column), pc.is_valid(text)))
        if stray >= 0:
            how = f"write it as {form}, or leave it empty"
            raise stray_cell(stray, text[stray].as_py(), where, held="dates", how=how)
    elif not is_date(kind):
        raise other_kind("dates", kind, where)
    time = pa.types.is_time(column.type)
    exact = pa.time64("us") if time else pa.timestamp("us", tz=getattr(column.type, "tz", None))
    micro = column.cast(exact, safe=False).cast(pa.int64())
    return np.array(micro.to_numpy(zero_copy_only=False), dtype=np.float64) / _DAY


def learn_dates(name: str, column: Any, *, written: str, missing: MissingPolicy, where: str) -> DateColumn | None:
    """Return what is learned from a column of dates: what fills gaps, and which cycles it has; None without a date."""
    days = days_of(column, written=written, where=where)
    present = days[~np.isnan(days)]
    if not len(present):
        return None
    counts_days = not (pa.types.is_time(column.type) or written in _CLOCKS)
    wanted: tuple[Cycle, ...] = ("year", "week", "day") if counts_days else ("day",)
    cycles = tuple(cycle for cycle in wanted if np.ptp(on_circle(present, cycle), axis=0).max() > 1e-9)
    fill = fill_value(present, "mean" if missing == "mean" else "median")
    return DateColumn(name, fill, cycles, counts_days or not cycles, written, needs_double(present))
