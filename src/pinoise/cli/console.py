"""What the verbs print: a progress bar on a terminal, plain lines elsewhere, tables and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pinoise.training.loop import Reporter
    from pinoise.training.state import Record

SCORE_TITLES = {"knn": "kNN", "sr": "SR", "lr": "LR", "few": "few-label"}


def print_json(value: object) -> None:
    """Print one JSON document to standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def say(sentence: str) -> None:
    """Print a sentence for people, aside from the output proper."""
    print(sentence, file=sys.stderr, flush=True)


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is words and whose others are figures; it is never cut to fit."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table, width=None if console.is_terminal else 200, crop=False)


class Bar:
    """A progress bar for one training."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._task: TaskID | None = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Show the bar."""
        self._task = self._progress.add_task(self._title, total=total_steps, completed=done_steps)

    def step(self, step: int) -> None:
        """Move the bar, and take it away at the end."""
        if self._task is None:
            return
        self._progress.update(self._task, completed=step)

    def epoch(self, record: Record) -> None:
        """Show the loss."""
        if self._task is not None:
            self._progress.update(self._task, description=f"{self._title} · loss {record.loss:.3f}")

    def done(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._progress.remove_task(self._task)


class Reporters:
    """Makes the reporter of each training: bars that replace one another, or nothing but a heading line."""

    def __init__(self, progress: Progress | None, *, lines_every: float | None) -> None:
        self._progress = progress
        self._lines_every = lines_every
        self._bar: Bar | None = None

    def __call__(self, title: str) -> Reporter:
        """Return the reporter of a training with this title."""
        from pinoise.training.progress import Lines, Quiet

        if self._bar is not None:
            self._bar.done()
            self._bar = None
        if self._progress is not None:
            self._bar = Bar(self._progress, title)
            return self._bar
        if self._lines_every is not None:
            return Lines(sys.stderr, every=self._lines_every)
        say(title)
        return Quiet()


@contextmanager
def reporters(*, lines_every: float | None = None) -> Iterator[Reporters]:
    """Yield a maker of reporters: bars on a terminal; elsewhere epoch lines, or headings if ``lines_every`` is None."""
    if not sys.stderr.isatty():
        yield Reporters(None, lines_every=lines_every)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Reporters(progress, lines_every=lines_every)
