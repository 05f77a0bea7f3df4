"""The document on security names tests that exist, at least one for every promise."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"^\| (.+?) \|.*\| `(tests/\S+\.py)::(\w+)` \|$", TEXT, re.MULTILINE)


def found_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_is_named_exists() -> None:
    missing = [f"{path}::{name}" for _, path, name in NAMED if name not in found_in(ROOT / path)]
    assert missing == []


def test_every_promise_has_a_test() -> None:
    promises = re.findall(r"^\*\*Promise (\d+)\.", TEXT, re.MULTILINE)
    assert promises == [str(number) for number in range(1, len(promises) + 1)]
    assert len(promises) >= 5
    assert set(promises) <= {promise for promise, _, _ in NAMED}
    assert TEXT.count("| `tests/") == len(NAMED)  # no line escapes the check
