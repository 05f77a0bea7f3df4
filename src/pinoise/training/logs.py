"""The curves of a run: metrics.csv and TensorBoard, cut back to the checkpoint when a run is resumed."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

from pinoise.files import WriteError, write_text
from pinoise.training.metrics import METRICS
from pinoise.training.progress import Record, Reporter

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter


COLUMNS = ("epoch", "step", "loss", *METRICS, "seconds")


class RunLog:
    """Writes every epoch's record to the run folder and passes everything on to another reporter."""

    def __init__(self, folder: Path, reporter: Reporter) -> None:
        self._csv = folder / "metrics.csv"
        self._board_folder = folder / "tensorboard"
        self._reporter = reporter
        self._board: SummaryWriter | None = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Keep the entries up to ``done_steps`` and drop later ones."""
        from torch.utils.tensorboard.writer import SummaryWriter

        kept = [record for record in read_metrics(self._csv) if record.step <= done_steps]
        write_text(self._csv, "".join(_line(values) for values in [COLUMNS, *map(_values, kept)]))
        self._board = SummaryWriter(str(self._board_folder), purge_step=done_steps + 1)
        self._reporter.start(total_steps=total_steps, done_steps=done_steps)

    def step(self, step: int) -> None:
        """Pass the step on."""
        self._reporter.step(step)

    def epoch(self, record: Record) -> None:
        """Write the record and pass it on."""
        try:
            with self._csv.open("a", encoding="utf-8") as file:
                file.write(_line(_values(record)))
        except OSError as error:
            raise WriteError(
                f"{self._csv} cannot be written ({error.strerror or error}): free some space and continue with "
                "--resume; earlier checkpoints are kept.",
                error.strerror,
            ) from error
        if self._board is not None:
            for name, value in {"loss": record.loss, **record.metrics}.items():
                if not math.isnan(value):
                    self._board.add_scalar(name, value, record.step)
        self._reporter.epoch(record)

    def close(self) -> None:
        """Flush the curves to disk."""
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> list[Record]:
    """Read metrics.csv. A line that a kill cut short is left out."""
    if not path.exists():
        return []
    records = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            try:
                metrics = {name: float(line[name]) for name in METRICS}
                loss, seconds = float(line["loss"]), float(line["seconds"])
                records.append(Record(int(line["epoch"]), int(line["step"]), loss, metrics, seconds))
            except (KeyError, TypeError, ValueError):
                continue
    return records


def _values(record: Record) -> tuple[object, ...]:
    measured = (record.metrics.get(name, math.nan) for name in METRICS)
    return (record.epoch, record.step, record.loss, *measured, record.seconds)


def _line(values: tuple[object, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
