"""A page as one file: it needs no network and no script."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined


@dataclass(frozen=True)
class Picture:
    """A picture with what it shows in words: a chart as SVG, whose text has the page's size, or pixels as PNG."""

    name: str  # of its file, without the extension
    kind: Literal["svg", "png"]
    content: bytes
    alt: str
    title: str = ""  # above it
    caption: str = ""  # below it

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.{self.kind}"

    @property
    def svg(self) -> str:
        """The chart as a piece of a page."""
        return self.content.decode()

    @property
    def uri(self) -> str:
        """The pixels as an address that contains them."""
        return "data:image/png;base64," + base64.b64encode(self.content).decode("ascii")


class ReportTable(NamedTuple):
    """A table: the first column is text, the others are figures."""

    caption: str
    titles: list[str]
    rows: list[list[str]]
    total: bool = False  # whether the last row sums up the others
    bars: tuple[int, ...] = ()  # the columns that have a bar as long as their number; the bars share a scale

    def share(self, cell: str) -> float:
        """Return the length of a cell's bar, in percent of the longest.

        >>> ReportTable("", ["feature", "σ"], [["age", "2"], ["cost", "0.5"]], bars=(1,)).share("0.5")
        25.0
        """
        most = max((float(row[column]) for row in self.rows for column in self.bars), default=0.0)
        return 100 * float(cell) / (most or 1.0)


def render(template: str, **content: Any) -> str:
    """Return a page as HTML; all text is escaped, whatever users call their files and columns.

    Args:
        template: its path below ``pinoise``.
        content: what the template shows; to leave something out is an error.
    """
    found = Environment(
        loader=PackageLoader("pinoise", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return found.get_template(template).render(content)
