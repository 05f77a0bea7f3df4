"""Pages that the site makes from the rest of the repository: the README, and the examples.

A page of the repository links to files beside it, as GitHub shows them. Here they become links inside the site: to a
page where there is one, and else to a copy of the file.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]

OUTSIDE = {
    "README.md": "index.md",
    "RESULTS.md": "reproduction.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "benchmarks/results/README.md": "results.md",
    "examples/paper/README.md": "paper_scale.md",
}
"""The pages of the site that are not in docs."""

_LINK = re.compile(r"(?P<code>^ *```.*?^ *```$|`[^`\n]*`)|(?<=\]\()(?P<target>[^)\s#]+)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put a page of docs that the navigation does not name at the end of the guides, under its own title."""
    named = set(re.findall(r"[\w/]+\.md", str(config.nav)))
    guides = next(section["Guides"] for section in config.nav or [] if "Guides" in section)
    guides.extend(sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name not in named))
    return config


def on_pre_build(config: MkDocsConfig) -> None:
    """Make the folder that the tutorial of the command works in."""
    shutil.rmtree(ROOT / "build" / "tutorial", ignore_errors=True)
    (ROOT / "build" / "tutorial").mkdir(parents=True)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made, and the files that pages link to outside docs."""
    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in OUTSIDE.items()}
    made |= {place_of(source): example_page(source) for source in sorted(ROOT.glob("examples/*.py"))}
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    for page in files.documentation_pages():
        if page.src_uri.startswith("examples/"):
            page.inclusion = InclusionLevel.NOT_IN_NAV
        for target in linked(page.content_string, folder_of(page.src_uri)):
            if target.is_file() and files.get_file_from_path(place_of(target)) is None:
                files.append(File.generated(config, place_of(target), abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links of the site."""
    here, folder = posixpath.dirname(page.file.src_uri), folder_of(page.file.src_uri)

    def moved(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or not is_relative(target):
            return found[0]
        path = (folder / target).resolve()
        return posixpath.relpath(place_of(path), here or ".") if path.is_file() else target

    if "markdown-exec" not in config.plugins:  # nothing is run, and what would be run is shown
        markdown = re.sub(r"^```(\w+) exec=.*$", r"```\1", markdown, flags=re.MULTILINE)
    return _LINK.sub(moved, markdown)


def folder_of(place: str) -> Path:
    """Return the folder that a page's links start from."""
    sources = {page: source for source, page in OUTSIDE.items()}
    return (ROOT / sources[place] if place in sources else ROOT / "docs" / place).parent


def place_of(path: Path) -> str:
    """Return where a file of the repository is in the site."""
    inside = path.relative_to(ROOT).as_posix()
    if inside.startswith("docs/"):
        return inside.removeprefix("docs/")
    if re.fullmatch(r"examples/\w+\.py", inside):
        return inside.removesuffix(".py") + ".md"
    return OUTSIDE.get(inside, inside)


def is_relative(target: str) -> bool:
    """Whether a link leads to a file, and not to the web."""
    return not re.match(r"[a-z]+:|/", target)


def linked(markdown: str, folder: Path) -> Iterator[Path]:
    """Yield the files of the repository, outside docs, that a page links to."""
    for found in _LINK.finditer(markdown):
        if (target := found["target"]) and is_relative(target):
            path = (folder / target).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs"):
                yield path


def example_page(path: Path) -> str:
    """Return an example as a page: what it says of itself, and its text."""
    source = path.read_text(encoding="utf-8")
    said = ast.get_docstring(ast.parse(source)) or path.stem
    title, _, rest = said.partition("\n")
    return (
        f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n`python examples/{path.name}` runs it.\n\n```python\n{source}```\n"
    )
