"""The curves of a run: metrics.csv and TensorBoard, written again from the checkpoint when a run is resumed."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pinoise.errors import UserError
from pinoise.files import check_is_file, write_text, writing
from pinoise.training.checkpoint import Progress
from pinoise.training.metrics import METRICS
from pinoise.training.progress import Record, Reporter

if TYPE_CHECKING:
    from torch.utils.tensorboard.writer import SummaryWriter


_MOST_STEPS = 2**53  # beyond, a number of steps is not exact in a chart

COLUMNS = ("epoch", "step", "loss", *METRICS, "seconds")


# What a user can do when the disk is full in the middle of training.
_ADVICE = "free some space and continue with --resume; earlier checkpoints are kept"


class RunLog:
    """Writes every epoch's record to the run folder and passes everything on to another reporter.

    Args:
        folder: the run folder.
        reporter: the other reporter.
        progress: the state of training. Its history, which a checkpoint keeps, is what the log begins with: a killed
            process may have written more than its checkpoint, or not yet all of it.
    """

    def __init__(self, folder: Path, reporter: Reporter, progress: Progress) -> None:
        self._progress = progress
        self._csv = folder / "metrics.csv"
        self._board_folder = folder / "tensorboard"
        self._reporter = reporter
        self._board: SummaryWriter | None = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Begin the log with the history so far, and drop all that earlier processes wrote."""
        from torch.utils.tensorboard.writer import SummaryWriter

        history = self._progress.history
        write_text(self._csv, "".join(_line(values) for values in [COLUMNS, *map(_values, history)]))
        with writing(self._board_folder, advice=_ADVICE):
            self._board = SummaryWriter(str(self._board_folder), purge_step=0)
        for record in history:
            self._draw(record)
        self._reporter.start(total_steps=total_steps, done_steps=done_steps)

    def step(self, step: int) -> None:
        """Pass the step on."""
        self._reporter.step(step)

    def epoch(self, record: Record) -> None:
        """Write the record and pass it on."""
        with writing(self._csv, advice=_ADVICE), self._csv.open("a", encoding="utf-8") as file:
            file.write(_line(_values(record)))
        self._draw(record)
        self._reporter.epoch(record)

    def _draw(self, record: Record) -> None:
        if self._board is not None:
            with writing(self._board_folder, advice=_ADVICE):
                for name, value in {"loss": record.loss, **record.metrics}.items():
                    if not math.isnan(value):
                        self._board.add_scalar(name, value, record.step)

    def close(self) -> None:
        """Flush the curves to disk."""
        if self._board is not None:
            with writing(self._board_folder, advice=_ADVICE):
                self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_metrics(path: Path) -> list[Record]:
    """Read metrics.csv. A line that is no record of an epoch, as after a kill, is left out."""
    if not path.exists():
        return []
    check_is_file(path)
    try:
        lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise UserError(f"{path} is not a table of text: the run folder is damaged; delete the file.") from None
    records = []
    for line in lines:
        try:
            metrics = {name: float(line[name]) for name in METRICS}
            loss, seconds = float(line["loss"]), float(line["seconds"])
            record = Record(int(line["epoch"]), int(line["step"]), loss, metrics, seconds)
        except (KeyError, TypeError, ValueError):
            continue
        if 0 < record.epoch <= record.step < _MOST_STEPS:
            records.append(record)
    return records


def _values(record: Record) -> tuple[object, ...]:
    measured = (record.metrics.get(name, math.nan) for name in METRICS)
    return (record.epoch, record.step, record.loss, *measured, record.seconds)


def _line(values: tuple[object, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
