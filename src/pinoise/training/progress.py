"""The progress of training: the record of an epoch, the reporter protocol, and reporters that need no terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TextIO

from pinoise.data.messages import counted


class Record(NamedTuple):
    """One line of the history: the state after an epoch."""

    epoch: int
    step: int
    loss: float  # mean over the epoch
    metrics: dict[str, float]  # by the names of ``METRICS``; nan if one does not apply or was not measured
    seconds: float  # of training so far, including the time before a resume


class Reporter(Protocol):
    """An object that training calls as it proceeds."""

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Training begins, or resumes after ``done_steps``."""

    def step(self, step: int) -> None:
        """A step is done."""

    def epoch(self, record: Record) -> None:
        """An epoch is done."""


class Quiet:
    """A reporter that prints nothing."""

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Print nothing."""

    def step(self, step: int) -> None:
        """Print nothing."""

    def epoch(self, record: Record) -> None:
        """Print nothing."""


class Lines:
    """Prints a line per epoch, at most one in ``every`` seconds, and always the last.

    >>> import sys
    >>> lines = Lines(sys.stdout)
    >>> lines.start(total_steps=10, done_steps=0)
    >>> lines.epoch(Record(1, 10, 2.5, {"sigma_mean": 0.9}, 3.2))
    epoch 1 · step 10/10 · loss 2.5000 · σ 0.900 · 3 s
    """

    def __init__(self, stream: TextIO, *, every: float = 0.0) -> None:
        self._stream = stream
        self._every = every
        self._total = 0
        self._last = -float("inf")

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Print the step after which a run resumes."""
        self._total = total_steps
        if done_steps >= total_steps:
            print(f"already done: {counted(total_steps, 'step')}", file=self._stream, flush=True)
        elif done_steps:
            print(f"resuming after step {done_steps} of {total_steps}", file=self._stream, flush=True)

    def step(self, step: int) -> None:
        """Print nothing."""

    def epoch(self, record: Record) -> None:
        """Print the line."""
        now = time.monotonic()
        if record.step < self._total and now - self._last < self._every:
            return
        self._last = now
        print(describe(record, self._total), file=self._stream, flush=True)


class Bar:
    """A progress bar of steps, on a terminal or in a notebook."""

    def __init__(self) -> None:
        self._bar: Any = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Show the bar."""
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total_steps, initial=done_steps, desc="training", unit="step")

    def step(self, step: int) -> None:
        """Move the bar."""
        self._bar.update(step - self._bar.n)

    def epoch(self, record: Record) -> None:
        """Show the epoch and its loss."""
        self._bar.set_description(f"epoch {record.epoch}", refresh=False)
        self._bar.set_postfix(loss=f"{record.loss:.4f}", refresh=False)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def shown(verbose: bool | int) -> Iterator[Reporter]:
    """Yield the reporter of a fit in Python: none, a bar where somebody watches, or else a line for each epoch."""
    if not verbose:
        yield Quiet()
        return
    if not (sys.stderr.isatty() or _in_notebook()):
        yield Lines(sys.stdout)
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process, as tqdm finds out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in shell.config


def describe(record: Record, total_steps: int) -> str:
    """Return one line about the state of training."""
    size = record.metrics.get("sigma_mean", math.nan)
    sigma = "" if math.isnan(size) else f" · σ {size:.3f}"
    steps = f"step {record.step}/{total_steps}"
    return f"epoch {record.epoch} · {steps} · loss {record.loss:.4f}{sigma} · {record.seconds:.0f} s"
