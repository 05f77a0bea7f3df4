"""A run folder while a run goes on: one process, or one group of processes, holds it, and its curves are written.

The curves are metrics.csv and TensorBoard, written again from the checkpoint when a run is resumed.
"""

from __future__ import annotations

import csv
import errno
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pinoise.errors import UserError
from pinoise.files import LOCK, check_is_file, write_text, writing
from pinoise.training.callbacks import Record, Reporter
from pinoise.training.checkpoint import Progress
from pinoise.training.metrics import METRICS

_PATIENCE = 1.0  # seconds; a process that only looks holds the lock for a moment
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


@contextmanager
def hold(folder: Path, *, note: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Create a run folder if it is not there, and let no other process train in it until the block ends.

    The system frees the lock when its process ends, however it ends. The empty ``run.lock`` stays, so that no two
    processes lock different files. A folder that is still empty after the block is removed.

    Args:
        folder: the run folder.
        note: called with a sentence about a file system without locks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with hold(Path(place, "run")):
    ...         [file.name for file in Path(place, "run").iterdir()]
    ...     list(Path(place).iterdir())
    ['run.lock']
    []
    """
    with writing(folder / LOCK):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, note):
        try:
            yield
        finally:
            with suppress(OSError):  # the folder may be gone
                if {file.name for file in folder.iterdir()} <= {LOCK}:
                    (folder / LOCK).unlink(missing_ok=True)
                    folder.rmdir()


def refuse_if_held(folder: Path) -> None:
    """Refuse a folder that another process trains in, before any work. Nothing is written."""
    if (folder / LOCK).exists():
        with _locked(folder):
            return


@contextmanager
def _locked(folder: Path, note: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Lock a folder, if its file system has locks. One that is locked is refused."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=_PATIENCE)
    except Timeout:
        raise UserError(f"{folder} is in use by another process: wait until it ends, or stop it.") from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            with writing(folder / LOCK):
                raise
        note(f"the file system of {folder} has no locks: make sure that no other process trains in it.")
    try:
        yield
    finally:
        lock.release()


COLUMNS = ("epoch", "step", "loss", *METRICS, "seconds")

# What a user can do when the disk is full in the middle of training.
_ADVICE = "free some space and continue with --resume; earlier checkpoints are kept"


class RunLog(Reporter):
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
        self._board: Any = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Begin the log with the history so far, and drop all that earlier processes wrote."""
        from torch.utils.tensorboard.writer import SummaryWriter

        history = self._progress.history
        write_metrics(self._csv, history)
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
        with writing(self._board_folder, advice=_ADVICE):
            for name, value in {"loss": record.loss, **record.metrics}.items():
                if not math.isnan(value):
                    self._board.add_scalar(name, value, record.step)

    def close(self) -> None:
        """Flush the curves to disk."""
        if self._board is not None:
            with writing(self._board_folder, advice=_ADVICE):
                self._board.close()


def write_metrics(path: Path, history: Iterable[Record]) -> None:
    """Write metrics.csv, with a line for every epoch."""
    write_text(path, "".join(_line(values) for values in [COLUMNS, *map(_values, history)]))


def read_metrics(path: Path) -> list[Record]:
    """Read metrics.csv of a run that has ended."""
    if not path.exists():
        return []
    check_is_file(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_record(line) for line in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        raise UserError(f"{path} is not the history of a run: the run folder is damaged; delete the file.") from None


def _record(line: Mapping[str, str]) -> Record:
    metrics = {name: float(line[name]) for name in METRICS}
    return Record(int(line["epoch"]), int(line["step"]), float(line["loss"]), metrics, float(line["seconds"]))


def _values(record: Record) -> tuple[object, ...]:
    measured = (record.metrics.get(name, math.nan) for name in METRICS)
    return (record.epoch, record.step, record.loss, *measured, record.seconds)


def _line(values: tuple[object, ...]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
