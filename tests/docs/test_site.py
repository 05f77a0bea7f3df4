"""The documentation site works without a network, its links lead somewhere, and it describes every public name."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urljoin

import pytest

pytest.importorskip("mkdocs", reason="needs mkdocs: pip install '.[docs]'")
from docs.site.docstrings import fenced
from docs.site.reference import REFERENCE, public_names


class TableSample(HTMLParser):
    """What a page loads, where it leads, and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.leads: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.places |= {value for name, value in given.items() if name in ("id", "name")}
        self.loads |= {value for name, value in given.items() if name == "src" or (tag == "link" and name == "href")}
        self.leads |= {value for name, value in given.items() if tag == "a" and name == "href"}


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, TableSample]:
    """Every page by its address in the site."""
    found = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    return {name: TableSample(text) for name, text in found.items() if name != "404.html"}


def test_nothing_is_loaded_from_the_network(pages: dict[str, TableSample]) -> None:
    assert len(pages) > 30
    outside = {(page, name) for page, seen in pages.items() for name in seen.loads if re.match(r"(https?:)?//", name)}
    assert outside == set()


def test_styles_name_no_address(site: Path) -> None:
    texts = (path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert [
        found for text in texts for found in re.findall(r"url\(\s*[\"']?(?:https?:)?//[^)]*|@import[^;]*", text)
    ] == []


def test_every_link_leads_to_a_page_and_to_a_place_in_it(site: Path, pages: dict[str, TableSample]) -> None:
    broken = []
    for page, seen in pages.items():
        for target in seen.leads | seen.loads:
            address, _, place = urljoin(page, target).partition("#")
            address = unquote(address.partition("?")[0]) or page
            if re.match(r"[a-z]+:", target) or (place and address in pages and unquote(place) in pages[address].places):
                continue
            if (place and address in pages and place != "__skip") or not (site / address).exists():
                broken.append((page, target))
    assert broken == []


def test_the_start_page_has_a_picture_and_a_use_case_before_any_table(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    article = text[text.index("<article") :]
    picture, use, table = (article.index(part) for part in ("<img", "A use case", "<table"))
    assert picture < use < table
    assert article.index("pip install") < table


def test_the_reference_has_every_public_name(pages: dict[str, TableSample]) -> None:
    places = {place for page, seen in pages.items() if page.startswith("reference/") for place in seen.places}
    modules = [module for group in REFERENCE.values() for module in group]
    front = set(public_names("pinoise"))
    assert set(import_module("pinoise").__all__) - {"__version__"} == front
    missing = {
        f"{module}.{name}"
        for module in modules
        for name in public_names(module)
        if f"{module}.{name}" not in places and name not in front
    }
    assert missing == set()
    assert {f"pinoise.{name}" for name in front} <= places
    assert {"pinoise.PiNDA.fit", "pinoise.PiNoise.views", "pinoise-train"} <= places


def test_packages_with_public_names_are_in_the_reference() -> None:
    described = {module for group in REFERENCE.values() for module in group}
    source = Path(import_module("pinoise").__file__ or "").parent
    packages = {f"pinoise.{path.parent.name}" for path in source.glob("*/__init__.py")}
    left = {name for name in packages if set(public_names(name)) - set(public_names("pinoise"))} - described
    assert left - {"pinoise.cli"} == set()  # the command has a page of its own


def test_the_reference_shows_parameters_defaults_and_examples_as_such(site: Path) -> None:
    text = (site / "reference" / "pinoise.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>", "", text)
    assert re.search(r"n_components\s*=\s*256", words)  # the value, not the expression behind it
    assert "Parameters:" in words
    assert "----------" not in words  # NumPy's underlines are read, not shown
    assert "<blockquote>\n<p>&gt;" not in text  # an example is no quotation
    shown = (site / "reference" / "information.html").read_text(encoding="utf-8")
    assert shown.count('<span class="gp">&gt;&gt;&gt; </span>') >= 5


def test_examples_of_docstrings_become_code() -> None:
    assert fenced("A.\n\n>>> f(\n...     1)\n2\n\nB.") == "A.\n\n```pycon\n>>> f(\n...     1)\n2\n```\n\nB."
    assert fenced("Nothing to see.") == "Nothing to see."


def look(browser: str, page: Path, query: str = "") -> tuple[str, str]:
    """What a browser makes of a page without a network, and what its console says."""
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=6000", "--dump-dom"]
    arguments += ["--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1280,900"]
    drawn = subprocess.run([browser, *arguments, page.as_uri() + query], check=True, capture_output=True, text=True)
    return drawn.stdout, "\n".join(line for line in drawn.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.processes
def test_search_works_from_a_disk(site: Path, browser: str) -> None:
    drawn, console = look(browser, site / "index.html", "?q=shrink")
    assert drawn.count("md-search-result__item") >= 2
    assert "troubleshooting.html" in drawn[drawn.index("md-search-result__item") :]
    assert console == ""


@pytest.mark.processes
@pytest.mark.parametrize("name", ["index", "reference/pinoise"])
def test_a_page_fits_a_telephone_and_a_screen_without_an_error(site: Path, browser: str, name: str) -> None:
    page = (site / f"{name}.html").read_text(encoding="utf-8")
    beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    tell = f"<script>onload = () => parent.postMessage(`${{innerWidth}}:${{{beyond}}}`, '*')</script>"
    inner = (site / name).with_name(f"{Path(name).stem}_inside.html")
    outer = inner.with_name(f"{Path(name).stem}_outside.html")
    inner.write_text(page.replace("</body>", f"{tell}</body>"), encoding="utf-8")
    listen = "<script>onmessage = ({data}) => { if (/^\\d+:\\d+$/.test(data)) document.title += ` ${data}` }</script>"
    frames = "".join(f'<iframe width="{width}" height="900" src="{inner.name}"></iframe>' for width in (420, 1280))
    outer.write_text(f"<title>widths</title>{listen}{frames}", encoding="utf-8")
    drawn, console = look(browser, outer)
    inner.unlink()
    outer.unlink()
    assert sorted(re.findall(r"(\d+:\d+)", drawn[: drawn.index("</title>")])) == ["1280:0", "420:0"]
    assert console == ""
