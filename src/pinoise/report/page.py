"""The report as one self-contained page: it needs no network, and its pictures need no script."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined

from pinoise.report.describe import Health, Table


@dataclass(frozen=True)
class Picture:
    """A picture with what it shows in words, and a chart in its place where scripts run."""

    name: str  # of its file, without the extension
    png: bytes
    alt: str
    caption: str
    chart: str | None = None  # HTML from ``interactive``, which needs the charts' script in the page

    @property
    def uri(self) -> str:
        """The picture as an address that contains it."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


@dataclass(frozen=True)
class PageSection:
    """A part of the page: sentences, then pictures, then tables."""

    title: str
    sentences: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def render_page(
    title: str,
    *,
    summary: list[tuple[str, str]],
    health: Health,
    sections: list[PageSection],
    environment: list[tuple[str, str]],
    config: str,
    script: str,
) -> str:
    """Return the page as HTML; all text is escaped, whatever users call their files and columns.

    Args:
        title: of the page, which names the run.
        summary: names and values of what matters most.
        health: what went wrong.
        sections: the body.
        environment: names and values of what the run ran on.
        config: the whole configuration.
        script: draws the charts; included if there are any.

    >>> from pinoise.information import HealthFlag
    >>> health = Health([HealthFlag("shrink", "σ < 0.05")])
    >>> page = render_page("<b>", summary=[], health=health, sections=[], environment=[], config="", script="")
    >>> "<title>&lt;b&gt;" in page, "σ &lt; 0.05" in page
    (True, True)
    """
    return render(
        "report.html.jinja",
        title=title,
        summary=summary,
        sections=sections,
        script=script,
        health=health,
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
    has_charts = any(picture.chart for section in sections for picture in section.pictures)
    sortable = any(table.sortable for section in sections for table in section.tables)
    return templates.get_template(template).render(
        title=title,
        summary=summary,
        sections=sections,
        script=script if has_charts else None,
        sorting=loader.get_source(templates, "sorting.js")[0] if sortable else None,
        **further,
    )
