"""Who follows training: reporters, which show its progress, and callbacks, which watch it, log it or end it."""

from __future__ import annotations

import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TextIO

from pinoise.errors import UserError, brief, counted, first_line


class Record(NamedTuple):
    """One line of the history: the state after an epoch."""

    epoch: int
    step: int
    loss: float  # mean over the epoch
    metrics: dict[str, float]  # by the names of ``METRICS``; nan if one does not apply or was not measured
    seconds: float  # of training so far, including the time before a resume


class Reporter:
    """An object that training calls as it proceeds. By itself it does nothing."""

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Training begins, or resumes after ``done_steps``."""

    def step(self, step: int) -> None:
        """A step is done."""

    def epoch(self, record: Record) -> None:
        """An epoch is done."""


class Quiet(Reporter):
    """A reporter that prints nothing."""


class Lines(Reporter):
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

    def epoch(self, record: Record) -> None:
        """Print the line."""
        now = time.monotonic()
        if record.step < self._total and now - self._last < self._every:
            return
        self._last = now
        print(describe(record, self._total), file=self._stream, flush=True)


class Bar(Reporter):
    """A progress bar of steps, on a terminal or in a notebook. It is shown when training starts."""

    def __init__(self, title: str = "training", *, leave: bool = True) -> None:
        self._title, self._leave = title, leave
        self._bar: Any = None

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Show the bar; only now, so that a download before it can have a bar of its own."""
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total_steps, initial=done_steps, desc=self._title, unit="step", leave=self._leave)

    def step(self, step: int) -> None:
        """Move the bar."""
        self._bar.update(step - self._bar.n)

    def epoch(self, record: Record) -> None:
        """Show the epoch and its loss."""
        self._bar.set_postfix(epoch=record.epoch, loss=f"{record.loss:.4f}", refresh=False)

    def close(self) -> None:
        """End the bar."""
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
    with closing(Bar()) as bar:
        yield bar


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


class Interrupted(Exception):  # noqa: N818
    """Training stopped on request at a step boundary, with everything saved."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


Outcome = Literal["finished", "stopped", "failed"]


class Callback:
    """Follows training, and may end it. Derive from it and override what you need.

    In training over several processes, only the first calls it.

    >>> class LossBelow(Callback):
    ...     def __init__(self, loss: float) -> None:
    ...         self.loss = loss
    ...
    ...     def on_epoch(self, record: Record) -> bool:
    ...         return record.loss < self.loss
    >>> LossBelow(2.0).on_epoch(Record(epoch=1, step=4, loss=1.5, metrics={}, seconds=0.1))
    True
    """

    def on_start(self, settings: Mapping[str, Any]) -> None:
        """Training begins or goes on. ``settings`` are those of the run, as nested plain values."""

    def on_epoch(self, record: Record) -> bool | None:
        """An epoch is done. Return True to end training here: the run is then finished."""

    def on_end(self, outcome: Outcome) -> None:
        """Training has ended: it is ``"finished"``, was ``"stopped"`` by an interrupt, or has ``"failed"``."""


class FunctionCallback(Callback):
    """A function of a record: True ends training."""

    def __init__(self, function: Callable[[Record], bool | None]) -> None:
        self._function = function

    def on_epoch(self, record: Record) -> bool | None:
        """Call the function."""
        return self._function(record)


class Callbacks:
    """All callbacks of a training, as a context: ``on_start`` at its begin, ``on_end`` at its end.

    An exception in ``on_epoch`` ends training and is kept in ``failure``, so that the state can be saved first. One in
    ``on_end`` becomes a warning.
    """

    def __init__(self, callbacks: Iterable[Any], settings: Mapping[str, Any]) -> None:
        self._all = checked_callbacks(callbacks)
        self._settings = settings
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        for callback in self._all:
            callback.on_start(self._settings)
        return self

    def on_epoch(self, record: Record) -> bool:
        """Tell all callbacks of an epoch. Return whether training should end."""
        try:
            answers = [callback.on_epoch(record) for callback in self._all]
        except Exception as error:
            self.failure = error
            return True
        return any(answer is True for answer in answers)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        outcome: Outcome = "finished" if error is None else "stopped" if stopped else "failed"
        for callback in self._all:
            try:
                callback.on_end(outcome)
            except Exception as late:
                why = f"{type(late).__name__}: {first_line(late)}"
                warnings.warn(f"{type(callback).__name__}.on_end failed ({why}).", stacklevel=2)


def checked_callbacks(callbacks: Any) -> list[Callback]:
    """Return the callbacks and functions of a list as callbacks. Refuse anything else.

    >>> checked_callbacks([lambda record: record.loss < 1])[0].on_epoch(Record(1, 4, 0.5, {}, 0.1))
    True
    >>> checked_callbacks(len)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: callbacks is <built-in function len>: give a list of them.
    """
    if isinstance(callbacks, str) or not isinstance(callbacks, Sequence):
        raise UserError(f"callbacks is {brief(callbacks)}: give a list of them.")
    for value in callbacks:
        if inspect.isclass(value) or not (callable(value) or isinstance(value, Callback)):
            raise UserError(
                f"callbacks has {brief(value)}: give an instance of pinoise.Callback, or a function of a record."
            )
    return [value if isinstance(value, Callback) else FunctionCallback(value) for value in callbacks]
