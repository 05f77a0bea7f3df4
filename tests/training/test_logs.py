from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from pinoise.training.logs import COLUMNS, RunLog, read_metrics
from pinoise.training.metrics import METRICS
from pinoise.training.progress import Quiet, Record


def record(epoch: int, *, costly: bool = True) -> Record:
    metrics = {name: epoch + i / 7 for i, name in enumerate(METRICS)}
    if not costly:
        metrics = {**metrics, "information": math.nan, "spread": math.nan}
    return Record(epoch, 10 * epoch, 1 / epoch, metrics, float(epoch))


def log(folder: Path, *records: Record, done_steps: int = 0) -> None:
    writer = RunLog(folder, Quiet())
    writer.start(total_steps=100, done_steps=done_steps)
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


def test_a_resumed_run_keeps_the_lines_up_to_its_checkpoint(tmp_path: Path) -> None:
    log(tmp_path, record(1), record(2), record(3))
    log(tmp_path, record(2, costly=False), done_steps=15)
    np.testing.assert_equal(read_metrics(tmp_path / "metrics.csv"), [record(1), record(2, costly=False)])


def test_a_line_that_a_kill_cut_is_left_out(tmp_path: Path) -> None:
    log(tmp_path, record(1), record(2))
    path = tmp_path / "metrics.csv"
    path.write_text(path.read_text()[:-30])
    assert read_metrics(path) == [record(1)]
    assert read_metrics(tmp_path / "gone.csv") == []


def test_curves_have_what_was_measured_and_no_nan(tmp_path: Path) -> None:
    log(tmp_path, record(1), record(2, costly=False))
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert set(board.Tags()["scalars"]) == {"loss", *METRICS}
    steps = {name: [event.step for event in board.Scalars(name)] for name in ("sigma_mean", "information")}
    assert steps == {"sigma_mean": [10, 20], "information": [10]}
