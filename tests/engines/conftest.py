"""A table in many Parquet files, and a finished run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinoise.model import Model, load_run
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training

FILES, ROWS = 40, 1500


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People of two years, an id for each in order, some ages missing."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    for number in range(FILES):
        inner = folder / f"year={2020 + number // 20}"
        inner.mkdir(exist_ok=True)
        age = rng.normal(40, 10, ROWS)
        people: dict[str, Any] = {
            "id": np.arange(number * ROWS, (number + 1) * ROWS),
            "age": pa.array(np.where(rng.random(ROWS) < 0.1, np.nan, age), from_pandas=True),
            "town": rng.choice(["Rome", "Oslo", "Bern"], ROWS),
            **{f"x{i}": rng.normal(size=ROWS) for i in range(20)},
        }
        pq.write_table(pa.table(people), inner / f"{number:02d}.parquet", row_group_size=500)
    return folder


@pytest.fixture(scope="session")
def settings(table: Path) -> dict[str, Any]:
    return {
        "data": {"source": str(table / "year=2020" / "00.parquet"), "drop": ["id"]},
        "encoder": {"hidden": 32, "out_features": 8},
        "head": {"hidden": 16, "out_features": 8},
        "training": {"epochs": 1, "batch_size": 64, "device": "cpu", "information_draws": 0, "checkpoint_every": 5},
    }


@pytest.fixture(scope="session")
def run(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("runs") / "run"
    run_training(path, parse_settings(settings), reporter=Quiet())
    return load_run(path)
