"""Small finished runs, their data and a model, made once; a test gets a copy of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.commands import here as command
from tests.problems import TINY, write_vectors

from pinoise import PiNDA, load_run
from pinoise.data.target import read_target

RUNS = ("r", "other")


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples in every format, a run with a label and a classifier, one without, and a model."""
    folder = tmp_path_factory.mktemp("made")
    x = write_vectors(folder / "d.csv", rows=200)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "d.csv"), folder / "d.parquet")
    np.save(folder / "d.npy", x)
    np.savez(folder / "d.npz", X=x)
    train = ("train", "--epochs", "1", *TINY, "--data")
    assert command(*train, folder / "d.csv", "--out", folder / "r", "--label", "class") == 0
    assert command(*train, folder / "d.npy", "--out", folder / "other") == 0
    load_run(folder / "r").fit_classifier(read_target(str(folder / "d.csv"), "class"))
    PiNDA(4, hidden=8, epochs=1, random_state=0).fit(x).save(folder / "model")
    return folder


@pytest.fixture
def here(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This test's copy, in the current folder."""
    folder = tmp_path / "here"
    shutil.copytree(_made, folder)
    for run in RUNS:  # a run holds the full path of its data
        config = folder / run / "config.yaml"
        config.write_text(config.read_text().replace(str(_made), str(folder)))
    monkeypatch.chdir(folder)
    return folder
