"""A run on rows in files: the same result as in memory, whether it was stopped or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.data import dataset
from pinoise.data.rows import LazyRows, make_rows
from pinoise.model import load_run
from pinoise.training import loop, order, run
from pinoise.training.callbacks import Interrupted, Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that counts as very long."""
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    for module in (loop, dataset):
        monkeypatch.setattr(module, "MANY_ROWS", 500)
    monkeypatch.setattr(order, "POOL", 16)
    monkeypatch.setattr(dataset, "HELD_VALUES", 100)
    random = np.random.default_rng(0)
    labels = random.integers(3, size=2000)
    x = np.round(64 * (random.normal(size=(2000, 6)) + labels[:, None])) / 64  # nothing is lost in single precision
    lines = [",".join([*(f"{value}" for value in row), "abc"[label]]) for row, label in zip(x, labels, strict=True)]
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["a,b,c,d,e,f,class", *lines]))
    return path


def settings(table: Path, stream: str) -> Any:
    return parse_settings(
        {
            "data": {"source": str(table), "label": "class", "stream": stream},
            "encoder": {"name": "mlp", "hidden": 16, "out_features": 8},
            "training": {"epochs": 2, "batch_size": 64, "checkpoint_every": 7, "patience": 5},
        }
    )


def weights(path: Path) -> str:
    return load_run(path).weights


def test_rows_in_files_train_to_the_bit_as_rows_in_memory(table: Path, tmp_path: Path) -> None:
    for stream in ("never", "always"):
        run_training(tmp_path / stream, settings(table, stream), reporter=Quiet())
    assert weights(tmp_path / "never") == weights(tmp_path / "always")


def test_a_stopped_run_on_rows_in_files_resumes_to_the_bit(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def watched(*args: Any, **more: Any) -> Any:
        made.append(make_rows(*args, **more))
        return made[-1]

    monkeypatch.setattr(run, "make_rows", watched)
    run_training(tmp_path / "whole", settings(table, "always"), reporter=Quiet())
    assert isinstance(made[0], LazyRows)
    assert made[0].in_files
    steps = iter(range(1, 100))
    with pytest.raises(Interrupted):
        run_training(
            tmp_path / "part", settings(table, "always"), reporter=Quiet(), should_stop=lambda: next(steps) == 30
        )
    run_training(tmp_path / "part", settings(table, "always"), reporter=Quiet())
    assert weights(tmp_path / "whole") == weights(tmp_path / "part")
