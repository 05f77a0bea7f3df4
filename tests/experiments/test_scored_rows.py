"""Scores of data larger than memory: on a sample, which is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from pinoise.data import Dataset, Part, ReadOptions, dataset
from pinoise.data.lazy import LazyArray
from pinoise.experiments import sources
from pinoise.experiments.evaluated import evaluate_run
from pinoise.experiments.scoring import PreparedSet
from pinoise.experiments.sources import fewer_to_score, open_compared
from pinoise.model import load_run
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that counts as too long to be held."""
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    for module in (dataset, sources):
        monkeypatch.setattr(module, "MANY_ROWS", 500)
    monkeypatch.setattr(dataset, "HELD_VALUES", 100)
    monkeypatch.setattr(sources, "SCORED_VALUES", 5000)
    monkeypatch.setattr(sources, "_LEAST_SCORED", 150)
    random = np.random.default_rng(0)
    labels = random.integers(3, size=2000)
    x = random.normal(size=(2000, 6)) + labels[:, None]
    path = tmp_path / "long.parquet"
    pyarrow.parquet.write_table(pa.table([*x.T, labels], names=[*"abcdef", "class"]), path)
    return path


def test_rows_that_fit_are_all_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SCORED_VALUES", 40)
    monkeypatch.setattr(sources, "_LEAST_SCORED", 5)
    assert len(fewer_to_score(Dataset("a", Part(np.zeros((10, 2))), Part(np.zeros((10, 2))))).train) == 10
    fewer = fewer_to_score(Dataset("a", Part(np.zeros((12, 2))), Part(np.zeros((10, 2)))))
    assert (len(fewer.train), len(fewer.test or ())) == (10, 10)
    assert fewer.notes[-1] == "22 rows are too many to score: 10 of each part are (--rows)"


def test_evaluate_scores_a_sample_and_says_so(table: Path, tmp_path: Path) -> None:
    settings = parse_settings(
        {
            "data": {"source": str(table), "label": "class", "stream": "always"},
            "encoder": {"name": "mlp", "hidden": 16, "out_features": 8},
            "training": {"epochs": 1, "batch_size": 64},
        }
    )
    run_training(tmp_path / "run", settings, reporter=Quiet())
    said: list[str] = []
    found = evaluate_run(load_run(tmp_path / "run"), note=said.append)
    assert found.sizes == (416, len_of_test(table))
    assert any(sentence.startswith("2000 rows are too many to score: 416 of each part are") for sentence in said)
    assert found.scores["learned"].knn > 0.5
    assert evaluate_run(load_run(tmp_path / "run"), rows=200).sizes == (200, 200)


def len_of_test(table: Path) -> int:
    (data,) = open_compared([str(table)], ReadOptions(stream="always"), label="class")
    assert isinstance(data, sources.ScoredElsewhere)
    assert data.scored.test is not None
    return len(data.scored.test)


def test_compare_trains_on_all_rows_in_files_and_scores_a_sample(table: Path) -> None:
    (data,) = open_compared([str(table)], ReadOptions(stream="always"), label="class")
    prepared = PreparedSet(data, "auto")
    assert isinstance(data.train.x, LazyArray)
    assert len(prepared.train) == len(data.train) > 1500
    assert len(prepared.labelled) == len(prepared.features.y_train) == 416
    assert data.spans == ()
    assert data.name == "long"
