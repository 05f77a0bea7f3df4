"""Uninterrupted runs to compare with, made once for all workers of the tests."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.families import TRAININGS
from tests.faults.kills import Whole, whole_training, whole_verb

from pinoise.data.disk import locked

Wholes = Callable[[str], Whole]


@pytest.fixture(scope="session")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> Wholes:
    """What the undisturbed command of a family did, by its name. Its folder is shared: do not change the run in it."""
    base = tmp_path_factory.getbasetemp()
    shared = base if tmp_path_factory.getbasetemp().name.startswith("pytest-") else base.parent

    def find(family: str) -> Whole:
        home, kept = shared / f"whole {family}", shared / f"whole {family}.pickle"
        with locked(kept):
            if not kept.exists():
                home.mkdir()
                whole = whole_training(family, home) if family in TRAININGS else whole_verb(family, home)
                kept.write_bytes(pickle.dumps(whole))
        found: Whole = pickle.loads(kept.read_bytes())
        return found

    return find


@pytest.fixture
def array(wholes: Wholes, tmp_path: Path) -> Whole:
    """The undisturbed training on an array in a file, with a copy of the file that a test may change."""
    whole = wholes("array in a file")
    shutil.copy(whole.home / "x.npy", tmp_path / "x.npy")
    return whole
