"""The command run in this process, small data files, and runs that many tests read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from pinoise.cli import main

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


def write_people(path: Path, *, rows: int = 60, seed: int = 0) -> Path:
    """Write a table with a text column, missing values of both kinds, and a label that the features tell."""
    rng = np.random.default_rng(seed)
    lines = ["age,town,income,group"]
    for row in range(rows):
        group = row % 2
        age = "" if row % 11 == 3 else f"{30 + 20 * group + rng.normal():.2f}"
        town = "" if row % 13 == 5 else str(rng.choice(["Oslo", "Rome", "Bern"]))
        lines.append(f"{age},{town},{1000 + 500 * group + 50 * rng.normal():.1f},{'yes' if group else 'no'}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def tiny() -> list[str]:
    return TINY


@pytest.fixture
def people(folder: Path) -> Path:
    """A table as users have them, in the current folder."""
    return write_people(folder / "people.csv")


def _quietly(*arguments: str) -> None:
    before = sys.argv
    sys.argv = ["pinoise", *arguments]
    try:
        main()
    finally:
        sys.argv = before


@pytest.fixture(scope="session")
def _digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "digits"
    _quietly("train", "--data", "digits", "--rows", "200", "--batch-size", "64", "--out", str(path), *TINY)
    return path


@pytest.fixture
def digits_run(_digits_run: Path, tmp_path: Path) -> Path:
    """A finished run on digits, this test's own copy."""
    return Path(shutil.copytree(_digits_run, tmp_path / "digits_run"))


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a real process of the command."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
