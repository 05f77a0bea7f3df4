"""Shared set-up: one thread per test worker, the real data, a tiny SAM, and the command run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.commands import Result, ended, here, start

from pinoise.evaluation import voting
from pinoise.experiments import scoring
from pinoise.paper.reproduce.masks import TINY_SAM
from pinoise.paper.sam import build_sam
from pinoise.training.config import Settings
from pinoise.training.run import fit

torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that tests start
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


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forests that take a moment."""
    monkeypatch.setattr(voting, "TREES", 5)
    monkeypatch.setattr(voting, "TREES_JUDGED", 5)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of every encoder that a comparison trains from now on."""
    seen: list[Settings] = []

    def remember(settings: Settings, *arguments: Any, **options: Any) -> Any:
        seen.append(settings)
        return fit(settings, *arguments, **options)

    monkeypatch.setattr(scoring, "fit", remember)
    return seen


@pytest.fixture
def pinoise(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command with these arguments in this process."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = here(*arguments)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def pinoise_process() -> Callable[..., Result]:
    """Run the command with these arguments in a process of its own, with ``where=`` and ``environ=`` if given."""

    def run(*arguments: object, **surroundings: Any) -> Result:
        return ended(start(*arguments, **surroundings))

    return run
