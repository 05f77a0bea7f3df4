"""What the verbs print: a progress bar on a terminal, plain lines elsewhere, tables and JSON."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from pinoise.files import to_json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pinoise.training.progress import Record, Reporter

SCORE_TITLES = {"knn": "kNN", "sr": "SR", "lr": "LR", "few": "few-label", "few_standardised": "standardised"}
R2_TITLES = {"knn": "kNN R²", "lr": "ridge R²", "few": "few-label R²"}  # of a measurement
SCORE_MEANINGS = "kNN: 5 nearest neighbours; SR: the paper's softmax regression; LR: logistic regression to convergence"
_LONGEST = 2000  # characters of a sentence
QUIET_SECONDS = 2.0  # between two plain lines on progress


def print_json(value: object) -> None:
    """Print one JSON document to standard output."""
    print(to_json(value))


def on_terminal() -> bool:
    """Whether somebody watches the terminal, so that a moving bar is useful."""
    return sys.stderr.isatty()


def say(sentence: str) -> None:
    """Print a sentence for people to standard error, on one line of a length that can be read."""
    print(on_one_line(sentence), file=sys.stderr, flush=True)


def on_one_line(sentence: str) -> str:
    """Return a sentence without characters that move the cursor, and without the middle of one that is too long.

    >>> on_one_line("a.csv\\n\\x1b[2J: no such file")
    'a.csv\\\\n\\\\x1b[2J: no such file'
    """
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]} … {sentence[-_LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)


def note(sentence: str) -> None:
    """Print a sentence that a user should know but need not act on."""
    say(f"note: {sentence}")


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as sentences, each once and without the line of code that raised it."""
    seen: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        sentence = str(message).strip().partition("\n")[0]
        if sentence not in seen:
            seen.add(sentence)
            note(sentence)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # for programmers, not for users of the command
        warnings.showwarning = show
        yield


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[int] = (0,)) -> None:
    """Print a table that is never cut to fit; the columns numbered in ``words`` are text, the others figures."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if number in words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console.print(table)


class Bar:
    """A progress bar for one training."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._task: TaskID | None = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Show the bar; only now, so that a download before it can have a bar of its own."""
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=total_steps, completed=done_steps)

    def step(self, step: int) -> None:
        """Move the bar."""
        if self._task is not None:
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
    """Makes the reporter of each training: bars that replace one another, or now and then a plain line."""

    def __init__(self, progress: Progress | None, *, epochs: bool) -> None:
        self._progress = progress
        self._epochs = epochs
        self._bar: Bar | None = None
        self._last = -float("inf")

    def __call__(self, title: str) -> Reporter:
        """Return the reporter of a training with this title."""
        from pinoise.training.progress import Lines, Quiet

        if self._bar is not None:
            self._bar.done()
            self._bar = None
        if self._progress is not None:
            self._bar = Bar(self._progress, title)
            return self._bar
        if self._epochs:
            return Lines(sys.stderr, every=QUIET_SECONDS)
        if time.monotonic() - self._last >= QUIET_SECONDS:
            self._last = time.monotonic()
            say(title)
        return Quiet()


@contextmanager
def reporters(*, epochs: bool) -> Iterator[Reporters]:
    """Yield a maker of reporters: bars on a terminal; elsewhere lines about ``epochs``, or about whole trainings."""
    if not on_terminal():
        yield Reporters(None, epochs=epochs)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    try:
        yield Reporters(progress, epochs=epochs)
    finally:
        progress.stop()
