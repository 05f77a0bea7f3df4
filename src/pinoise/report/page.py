"""The report as one self-contained page: it needs no network, and its pictures need no script."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from pinoise.report.answer import Answer
from pinoise.report.describe import Health, ReportTable


class Chart(NamedTuple):
    """A chart with values under the pointer: HTML from ``interactive``, which needs the charts' script in the page."""

    title: str
    html: str


class Key(NamedTuple):
    """What a colour means."""

    colour: str
    text: str


@dataclass(frozen=True)
class Picture:
    """A picture with what it shows in words, and charts in its place where scripts run and nobody prints."""

    name: str  # of its file, without the extension
    png: bytes
    alt: str
    caption: str
    charts: list[Chart] = field(default_factory=list)
    key: list[Key] = field(default_factory=list)  # to the colours of the charts

    @property
    def uri(self) -> str:
        """The picture as an address that contains it."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


@dataclass(frozen=True)
class PageSection:
    """A part of the page: sentences, flags, pictures, tables, facts and notes, in this order."""

    title: str
    sentences: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    health: Health | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)  # names and values
    notes: list[str] = field(default_factory=list)


def render_page(
    title: str,
    *,
    answer: Answer,
    sections: list[PageSection],
    command: str,
    environment: list[tuple[str, str]],
    config: str,
    script: str,
) -> str:
    """Return the page as HTML; all text is escaped, whatever users call their files and columns.

    Args:
        title: of the page, which names the run.
        answer: what the reader wants to know first.
        sections: the body.
        command: what trains the run again.
        environment: names and values of what the run ran on.
        config: the whole configuration.
        script: draws the charts; included if there are any.

    >>> answer = Answer("better", "2 < 3", [])
    >>> page = render_page("<b>", answer=answer, sections=[], command="", environment=[], config="", script="")
    >>> "<title>&lt;b&gt;" in page, "2 &lt; 3" in page
    (True, True)
    """
    return render(
        "report.html.jinja",
        title=title,
        summary=[],
        sections=sections,
        script=script,
        answer=answer,
        command=command,
        environment=environment,
        config=config,
    )


def render(
    template: str,
    *,
    title: str,
    summary: list[tuple[str, str]],
    sections: list[PageSection],
    script: str,
    **further: object,
) -> str:
    """Return a page of any template, with the scripts that its charts and sortable tables need."""
    loader = PackageLoader("pinoise.report")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    has_charts = any(picture.charts for section in sections for picture in section.pictures)
    sortable = any(table.sortable for section in sections for table in section.tables)
    return templates.get_template(template).render(
        title=title,
        summary=summary,
        sections=sections,
        script=script if has_charts else None,
        sorting=loader.get_source(templates, "sorting.js")[0] if sortable else None,
        **further,
    )
