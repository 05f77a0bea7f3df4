from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from pinoise.errors import UserError
from pinoise.training.callbacks import Quiet, Record
from pinoise.training.checkpoint import Progress
from pinoise.training.metrics import METRICS
from pinoise.training.running import COLUMNS, RunLog, read_metrics


def record(epoch: int, *, costly: bool = True) -> Record:
    metrics = {name: epoch + i / 7 for i, name in enumerate(METRICS)}
    if not costly:
        metrics = {**metrics, "information": math.nan, "spread": math.nan}
    return Record(epoch, 10 * epoch, 1 / epoch, metrics, float(epoch))


def log(folder: Path, *records: Record, history: Sequence[Record] = ()) -> None:
    writer = RunLog(folder, Quiet(), Progress(history=list(history)))
    writer.start(total_steps=100, done_steps=10 * len(history))
    for each in records:
        writer.epoch(each)
    writer.close()


def test_a_line_has_every_metric_in_a_column_of_its_name(tmp_path: Path) -> None:
    written = [record(1), record(2, costly=False)]
    log(tmp_path, *written)
    with (tmp_path / "metrics.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == COLUMNS == ("epoch", "step", "loss", *METRICS, "seconds")
    assert [float(line["participation"]) for line in lines] == [each.metrics["participation"] for each in written]
    np.testing.assert_equal(read_metrics(tmp_path / "metrics.csv"), written)


@pytest.mark.parametrize("written", [(1, 2, 3), (1,), ()])
def test_a_resumed_run_has_the_epochs_of_its_checkpoint_whatever_a_killed_process_wrote(
    tmp_path: Path, written: tuple[int, ...]
) -> None:
    if written:
        log(tmp_path, *map(record, written))
    log(tmp_path, record(3, costly=False), history=[record(1), record(2)])
    expected = [record(1), record(2), record(3, costly=False)]
    np.testing.assert_equal(read_metrics(tmp_path / "metrics.csv"), expected)
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [event.step for event in board.Scalars("loss")] == [10, 20, 30]
    assert [event.step for event in board.Scalars("information")] == [10, 20]


def test_a_damaged_history_is_one_sentence(tmp_path: Path) -> None:
    log(tmp_path, record(1), record(2))
    path = tmp_path / "metrics.csv"
    path.write_text(path.read_text()[:-30])
    with pytest.raises(UserError, match=r"metrics\.csv is not the history of a run"):
        read_metrics(path)
    assert read_metrics(tmp_path / "gone.csv") == []


def test_curves_have_what_was_measured_and_no_nan(tmp_path: Path) -> None:
    log(tmp_path, record(1), record(2, costly=False))
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert set(board.Tags()["scalars"]) == {"loss", *METRICS}
    steps = {name: [event.step for event in board.Scalars(name)] for name in ("sigma_mean", "information")}
    assert steps == {"sigma_mean": [10, 20], "information": [10]}
