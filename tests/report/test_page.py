"""The page: complete, self-contained, accessible, and deaf to code in names."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pinoise.model import Model
from pinoise.report import write_report

VOID = {"meta", "img", "br", "link", "input"}


class Outline(HTMLParser):
    """What a page is made of; complains about tags that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def page_of_table(table_run: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([table_run], folder=tmp_path_factory.mktemp("report")).page


@pytest.fixture(scope="module")
def page_of_pictures(colour_run: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([colour_run], folder=tmp_path_factory.mktemp("report"), samples=2).page


@pytest.mark.parametrize("fixture", ["page_of_table", "page_of_pictures"])
def test_a_page_needs_nothing_beside_it_and_nobody_to_see_it(fixture: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(fixture).read_text(encoding="utf-8")
    outline = Outline(page)
    assert page.startswith("<!DOCTYPE html>")
    addresses = [
        value
        for _, attributes in outline.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset")
    ]
    assert all(address is not None and address.startswith("data:image/png;base64,") for address in addresses)
    assert not {"link", "iframe", "object", "embed", "script"} & {tag for tag, _ in outline.tags}
    (policy,) = [a["content"] for tag, a in outline.tags if tag == "meta" and a.get("http-equiv")]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert dict(outline.tags)["html"] == {"lang": "en"}
    assert all(attributes.get("alt") for tag, attributes in outline.tags if tag == "img")
    assert all(attributes.get("scope") for tag, attributes in outline.tags if tag == "th")
    identifiers = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))


def test_a_page_of_pictures_shows_them_and_a_table_its_features(page_of_table: Path, page_of_pictures: Path) -> None:
    table, pictures = Outline(page_of_table.read_text()), Outline(page_of_pictures.read_text())
    assert "<b>cost</b> in $" in table.words
    assert "mean σ, in std" in table.words
    assert sum(attributes.get("class") == "chart" for _, attributes in table.tags) == 5  # two maps and three of curves
    (grid,) = [a["alt"] for tag, a in pictures.tags if tag == "img" and "x + ε" in (a["alt"] or "")]
    assert grid is not None
    assert grid.startswith("2 test samples in columns; in rows the originals, μ, σ")


BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)

# Run in the page once it is drawn: what does not fit, and what lies on what.
LOOK = """<script>addEventListener("load", () => setTimeout(() => {
  const boxes = [...document.querySelectorAll("h1, h2, h3")].map((node) => node.getBoundingClientRect());
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const wide = [...document.querySelectorAll(".chart svg")].filter(
    (svg) => svg.getBoundingClientRect().right > svg.closest("section").getBoundingClientRect().right + 1);
  const found = {
    charts: document.querySelectorAll(".chart svg").length,
    overlapping: boxes.filter((a, i) => boxes.some((b, j) => i < j && over(a, b))).length,
    sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    wide: wide.length,
    cut: [...document.querySelectorAll("section:nth-of-type(2) .wide, section:nth-of-type(1) .wide")].filter(
      (table) => table.scrollWidth > table.clientWidth + 1).length,
    errors: window.complaints,
    fetched: performance.getEntriesByType("resource").filter((entry) => !entry.name.startsWith("data:")).length,
  };
  document.title = JSON.stringify(found);
}, 1500));</script>"""
LISTEN = """<script>window.complaints = [];
for (const kind of ["error", "warn"]) console[kind] = (...all) => window.complaints.push(all.join(" "));
addEventListener("error", (event) => window.complaints.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => window.complaints.push(event.violatedDirective));</script>"""


@pytest.mark.processes
@pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium is not installed")
@pytest.mark.parametrize("width", [1200, 420])
@pytest.mark.parametrize("fixture", ["page_of_table", "page_of_pictures"])
def test_a_browser_draws_everything_in_its_place(
    fixture: str, width: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    text = request.getfixturevalue(fixture).read_text(encoding="utf-8")
    copy = tmp_path / "page.html"
    # A window of Chromium has at least 500 pixels, so the page stands in a frame.
    allowed = text.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'")
    listening = allowed.replace("<head>", f"<head>{LISTEN}", 1).replace("</body>", f"{LOOK}</body>")
    copy.write_text(listening, encoding="utf-8")
    frame = tmp_path / "frame.html"
    title = "setInterval(() => document.title = document.querySelector('iframe').contentDocument.title, 500)"
    frame.write_text(f'<iframe src="page.html" width="{width}" height="900"></iframe><script>{title}</script>')
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    arguments += ["--virtual-time-budget=20000", "--window-size=1400,1000", f"--user-data-dir={tmp_path}", "--dump-dom"]
    assert BROWSER is not None
    drawn = subprocess.run([BROWSER, *arguments, frame.as_uri()], check=True, capture_output=True, text=True)
    found = json.loads(html.unescape(drawn.stdout.split("<title>")[1].split("</title>")[0]))
    assert found.pop("charts") >= 4
    assert found == {"overlapping": 0, "sideways": 0, "wide": 0, "cut": 0, "errors": [], "fetched": 0}
