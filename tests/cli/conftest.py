"""The command run in this process, small data files, and runs that many tests read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.commands import here
from tests.problems import write_people

TINY = [
    *("--set", "encoder=mlp", "--set", "encoder.hidden=16", "--set", "encoder.out_features=8"),
    *("--set", "noise.generator.hidden=16"),
    *("--epochs", "2", "--device", "cpu"),
]
"""Settings with which a run takes a moment."""


@pytest.fixture(autouse=True)
def cells(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where comparisons keep finished cells in this test, rather than in the user's home."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PINOISE_CACHE", str(cache))
    return cache / "cells"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tiny() -> list[str]:
    return TINY


@pytest.fixture
def people(folder: Path) -> Path:
    """A table as users have them, in the current folder."""
    return write_people(folder / "people.csv")


@pytest.fixture(scope="session")
def _digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "digits"
    assert here("train", "--data", "digits", "--rows", "200", "--batch-size", "64", "--out", path, *TINY) == 0
    return path


@pytest.fixture
def digits_run(_digits_run: Path, tmp_path: Path) -> Path:
    """A finished run on digits, this test's own copy."""
    return Path(shutil.copytree(_digits_run, tmp_path / "digits_run"))
