"""The tutorials run: every block of Python in its order, and every command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
BLOCK = re.compile(r'^```(?P<language>python|console) exec="true"(?P<options>[^\n]*)\n(?P<text>.*?)^```$', re.M | re.S)


def blocks(name: str) -> list[re.Match[str]]:
    return list(BLOCK.finditer((FOLDER / f"{name}.md").read_text(encoding="utf-8")))


def test_there_is_a_tutorial_for_every_door() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {"few_labels", "own_loop", "command"}
    for path in FOLDER.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert text.count("exec=") == len(blocks(path.stem)) >= 5


@pytest.mark.parametrize("name", ["few_labels", "own_loop", "command"])
def test_the_tutorial_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinoise: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    scope: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(name):
        if block["language"] == "python":
            exec(compile(block["text"], f"{name}.md", "exec"), scope)
            continue
        for line in block["text"].splitlines():
            words = shlex.split(line.removeprefix("$ "))
            if words[0] == "pinoise":
                result = pinoise(*words[1:])
                assert result.code == 0, result.err
            else:
                assert Path(words[-1]).is_file(), line


def test_the_tutorial_quotes_the_results() -> None:
    results = (FOLDER.parents[1] / "benchmarks" / "results" / "README.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in results.partition("| few | ")[2].splitlines()]
    raw, learned = (["few", *rows[0]].index(name) for name in ("raw features", "PiNDA"))
    figures = {row[0]: (row[raw], row[learned]) for row in rows[2:32]}
    page = " ".join((FOLDER / "few_labels.md").read_text(encoding="utf-8").split())
    assert "wine has {} % with raw features and {} % with the embedding".format(*figures["wine"]) in page
    assert "breast cancer {} % and {} %".format(*figures["breast_cancer"]) in page
    below = re.search(r"With few labels PiNDA is below raw features on ([^.]*)\.", results)
    assert below is not None
    assert len(below[1].split(", ")) == 5
    assert "on five of the 30 sets" in page
