"""The lines of a reproduction as tables of text: the paper's figure, ours, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import stdev

from pinoise.paper.reproduce.outcome import OutcomeLine, Reproduction, interval
from pinoise.paper.reproduce.paper import COLUMNS, COSTS, Item
from pinoise.report.page import ReportTable


def tables(found: Reproduction, *, intervals: bool = False) -> list[ReportTable]:
    """Return a table for every data set, whose rows end with remarks.

    ``intervals`` shows those of our means, instead of standard deviations.
    """
    if found.item.kind == "data":
        return [_data_table(found)]
    shown = {used.key: used.shown for used in found.used}
    keys = dict.fromkeys(line.data for line in found.lines)
    return [
        _table(
            shown.get(key, found.item.data[key].title),
            [line for line in found.lines if line.data == key],
            found.item,
            intervals=intervals,
        )
        for key in keys
    ]


def _table(title: str, lines: Sequence[OutcomeLine], item: Item, *, intervals: bool) -> ReportTable:
    columns = [column for column in item.columns if any(column in line.ours for line in lines)]
    papers = {column: any(column in line.paper for line in lines) for column in columns}
    titles = [title]
    for column in columns:
        titles += [f"paper {COLUMNS[column]}"] if papers[column] else []
        titles += [COLUMNS[column]]
        titles += ["difference"] if papers[column] else []
    rows = []
    for line in lines:
        row = [line.title]
        for column in columns:
            sign = "+" if column in COSTS and item.costs_are_added and line.above is not None else ""
            row += [_papers(line, column, sign=sign)] if papers[column] else []
            row += [_ours(line, column, sign=sign, intervals=intervals)]
            row += [_difference(line, column)] if papers[column] else []
        rows.append([*row, _remarks(line)])
    return ReportTable(title, [*titles, "remarks"], rows)


def _data_table(found: Reproduction) -> ReportTable:
    rows = []
    for line in found.lines:
        here = f"{line.method}: {number(line.ours['here'][0], 'rows')} rows" if line.method else "absent"
        apart = _difference(line, "rows")
        row = [_papers(line, "rows"), _ours(line, "rows"), "" if apart == "+0" else apart]
        rows.append([line.title, *row, _papers(line, "classes"), _ours(line, "classes"), here])
    titles = ["set", "paper rows", "publisher's rows", "difference", "paper classes", "classes", "here"]
    return ReportTable("Sizes, all parts together", titles, rows)


def number(value: float, column: str) -> str:
    """Return a figure as its column shows it.

    >>> number(77.756, "knn"), number(2.571e12, "flops"), number(10299, "rows"), number(0.0842, "memory")
    ('77.8', '2.57e+12', '10,299', '0.0842')
    """
    if column in ("rows", "classes"):
        return f"{value:,.0f}"
    if column == "flops":
        return f"{value:.2e}"
    if column in COSTS:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.1f}" if column in ("knn", "sr") else f"{value:.3f}"


def _papers(line: OutcomeLine, column: str, *, sign: str = "") -> str:
    if column not in line.paper:
        return "–"
    values = line.paper[column]
    digits = 2 if column in ("knn", "sr") else None
    mean = number(values[0], column) if digits is None else f"{values[0]:.{digits}f}"
    return f"{sign}{mean}" + (f" ±{values[1]:.2f}" if len(values) > 1 else "")


def _ours(line: OutcomeLine, column: str, *, sign: str = "", intervals: bool = False) -> str:
    mean = line.mean(column)
    if mean is None:
        return "–"
    shown = f"{sign}{number(mean, column)}"
    values = line.ours[column]
    if len(values) < 2:
        return shown
    if intervals and (bounds := interval(values)) is not None:
        return f"{shown} [{number(bounds[0], column)}, {number(bounds[1], column)}]"
    return f"{shown} ±{number(stdev(values), column)}"


def _difference(line: OutcomeLine, column: str) -> str:
    difference = line.difference(column)
    if difference is None:
        return "–"
    if column in COSTS:
        share = difference / line.paper[column][0]
        return f"{share:+.1%}" if abs(share) < 1 else f"× {1 + share:.3g}"
    return f"{difference:+,.0f}" if column in ("rows", "classes") else f"{difference:+.1f}"


def _remarks(line: OutcomeLine) -> str:
    chosen = [f"best: {line.method}"] if ", best " in line.title else []
    return "; ".join([*chosen, *line.flags, *([line.note] if line.note else [])])
