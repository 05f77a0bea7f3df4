"""RESULTS.md is what its command makes of the committed result files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pinoise.paper.reproduce.outcome import Reproduction

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "benchmarks" / "results" / "reproduce").glob("*.json"))


@pytest.mark.processes
def test_the_page_is_made_from_the_result_files(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    subprocess.run([sys.executable, ROOT / "benchmarks" / "reproduced.py", page], check=True)
    assert page.read_text(encoding="utf-8") == (ROOT / "RESULTS.md").read_text(encoding="utf-8")


def test_results_are_complete_and_say_where_and_when_they_were_made() -> None:
    assert FILES
    for path in FILES:
        found = Reproduction.from_dict(json.loads(path.read_text(encoding="utf-8")))
        assert found.is_complete, path
        assert found.item.name == path.stem
        assert {"date", "cpu", "cpu_count", "packages"} <= found.environment.keys()
        assert str(Path.home()) not in path.read_text(encoding="utf-8")
