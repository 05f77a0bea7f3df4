"""Every flag that training can raise has an entry, and every entry a flag."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pinoise

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


def raised() -> set[str]:
    """The names of all flags, from the calls that make them."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(pinoise.__file__).parent.rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [call.args[0] for call in calls if ast.unparse(call.func) == "HealthFlag" and call.args]
    return {ast.literal_eval(name) for name in names}


def test_every_flag_has_an_entry_that_says_what_it_means_and_what_to_do() -> None:
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S))
    assert set(sections) == raised()
    assert len(sections) >= 7
    for text in sections.values():
        assert "**What it means.**" in text
        assert "**What to do.**" in text
