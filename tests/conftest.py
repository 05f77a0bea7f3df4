"""Shared set-up: one thread per test worker, the real data, a tiny SAM, and the command run in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from pinoise.cli import main
from pinoise.paper.reproduce.masks import TINY_SAM
from pinoise.paper.sam import build_sam

torch.set_num_threads(1)
TESTS = Path(__file__).parent
TIERS = {TESTS / "hostile": "hostile", TESTS / "faults": "processes", TESTS / "docs": "slow"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of some folders in a tier; elsewhere a test or a file names its own."""
    for item in items:
        for folder, tier in TIERS.items():
            if folder in item.path.parents:
                item.add_marker(tier)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or a skip that says what is missing."""
    folder = os.environ.get("PINOISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real data sets: set PINOISE_DATA to their folder")
    return Path(folder)


@pytest.fixture
def sam_weights(tmp_path: Path) -> Path:
    """A file of weights for a tiny Segment-Anything model, with which masks differ between prompts and images."""
    path = tmp_path / "sam.pth"
    torch.manual_seed(0)
    tensors = build_sam(TINY_SAM).state_dict()
    # Positions start at zero and prompts hardly matter, so that both are drawn wider.
    torch.save({name: tensor + 0.3 * torch.randn_like(tensor) for name, tensor in tensors.items()}, path)
    return path


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What a mistake was answered with, checked to be one line and no traceback."""
        assert self.code == 2, (self.code, self.out, self.err)
        lines = [line for line in self.err.splitlines() if not line.startswith("note: ")]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("pinoise: "), self.err
        assert self.out == ""
        return lines[0].removeprefix("pinoise: ")


@pytest.fixture
def pinoise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command with these arguments."""

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["pinoise", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run
