"""Finished runs on small tables and small pictures, trained for a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.model import Model, load_run
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.run import run_training

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 8, "out_features": 4},
    "head": {"hidden": 8, "out_features": 4},
    "noise": {"generator": {"hidden": 8}},
    "training": {"epochs": 2, "batch_size": 16, "device": "cpu", "information_draws": 2},
}
Train = Callable[..., Model]


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Train a small run on a file; changes are nested settings."""

    def make(source: Path, **changes: Any) -> Model:
        path = tmp_path_factory.mktemp("runs") / "run"
        settings = parse_settings(merge({**SMALL, "data": {"source": str(source)}}, changes))
        run_training(path, settings, reporter=Quiet())
        return load_run(path)

    return make


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, colour pictures, grey pictures without labels, and counts that are mostly zeros."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    table = rng.normal(size=(40, 3)) * [1.0, 10.0, 100.0] + y[:, None]
    lines = [
        ",".join(f"{value:.6f}" for value in row) + f",{label}" for row, label in zip(table, "ab" * 20, strict=True)
    ]
    (folder / "table.csv").write_text("\n".join(['age,<b>cost</b> in $,"a, b",group', *lines]) + "\n")
    np.savez(folder / "colour.npz", X=rng.integers(0, 256, size=(40, 8, 6, 3), dtype=np.uint8), y=y)
    np.save(folder / "grey.npy", rng.integers(0, 256, size=(30, 8, 6), dtype=np.uint8))
    counts = np.zeros((40, 30))
    counts[np.arange(40), np.arange(40) % 30] = rng.integers(1, 9, size=40)
    counts[np.arange(40), (np.arange(40) * 7 + 1) % 30] = rng.integers(1, 9, size=40)
    np.save(folder / "counts.npy", counts)
    return folder


@pytest.fixture(scope="session")
def table_run(train: Train, files: Path) -> Model:
    return train(files / "table.csv", data={"label": "group"}, noise={"generator": "mlp"})


@pytest.fixture(scope="session")
def colour_run(train: Train, files: Path) -> Model:
    """An MLP on pictures, which takes them as they lie in the file."""
    return train(files / "colour.npz", objective="paper", noise={"mean": "learned"})
