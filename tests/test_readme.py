"""What the documents say is true: their examples run, their links lead somewhere, their commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from pinoise.cli.app import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACEHOLDER = re.compile(r"^\s*[A-Z0-9]+(?:_[A-Z0-9]+)+\s*$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a document."""

    document: Path
    line: int  # of its first line, from 1
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document.name}:{self.line}"


def fenced(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    return [
        Block(document, text[: found.start(2)].count("\n") + 1, found[1], found[2])
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


BLOCKS = [block for document in DOCUMENTS for block in fenced(document)]
EXAMPLES = [block for block in BLOCKS if block.language == "python"]


def commands(text: str) -> list[list[str]]:
    """The words of every call of the command in a console block, without comments."""
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["pinoise"]]


CALLS = [(block.name, words) for block in BLOCKS if block.language == "console" for words in commands(block.text)]


def links(text: str) -> list[str]:
    """The targets of links that are neither to the web nor inside the page."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.name)
def test_the_python_example_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n" * (block.line - 1) + block.text  # so that a traceback names the document's own line
    exec(compile(code, str(block.document), "exec"), {"__name__": "__main__"})


def test_the_readme_has_examples_of_both_kinds() -> None:
    assert sum(block.document == README for block in EXAMPLES) >= 2
    assert any(name.startswith("README.md:") for name, _ in CALLS)
    assert any(block.document.name == "data.md" for block in EXAMPLES)


def test_the_readme_opens_with_a_picture_a_use_case_the_pip_line_and_three_doors() -> None:
    opening = README.read_text(encoding="utf-8").splitlines()[:60]
    doors = ("from pinoise import PiNDA", "noise = PiNoise.along", "pinoise train")
    for part in ("![", "**A use case", "pip install ", *doors):
        assert any(line.startswith(part) for line in opening), part
    assert not any(line.startswith("|") for line in opening)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_placeholder_is_left(document: Path) -> None:
    assert PLACEHOLDER.findall(document.read_text(encoding="utf-8")) == []


def test_a_placeholder_is_recognised() -> None:
    assert PLACEHOLDER.findall("prints\n\nDEMO_TABLE\n\nSo `PINOISE_DATA` is fine") != []
    assert PLACEHOLDER.findall("Set\nPINOISE_DATA to a folder, and\nCSV\n") == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    targets = links(document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).is_file()] == []


def test_links_are_found() -> None:
    text = "[a](docs/a.md#part) [b](https://b.org) [c](#here) `[d](no.md)`\n```\n[e](no.md)\n```\n"
    assert links(text) == ["docs/a.md"]


def options_of(verb: Any) -> set[str]:
    return {option for parameter in verb.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@pytest.mark.parametrize(("name", "words"), CALLS, ids=[f"{name} {' '.join(words[:1])}" for name, words in CALLS])
def test_the_command_has_the_verb_and_the_options(name: str, words: list[str]) -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert words[0] in verbs
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= options_of(verbs[words[0]])
