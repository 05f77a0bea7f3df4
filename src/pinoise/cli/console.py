"""What the verbs print, and what is heard meanwhile: Ctrl-C and other requests to stop, and how a command leaves.

A progress bar is shown on a terminal, plain lines elsewhere. Nothing here takes long to import, so that a request is
heard from the first moment.
"""

from __future__ import annotations

import atexit
import os
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from pinoise.files import to_json
from pinoise.training.processes import AGENT, STOPPED, is_first, leave_word

if TYPE_CHECKING:
    from pinoise.training.callbacks import Reporter


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
    if "tqdm" in sys.modules and on_terminal():  # a bar may be there, above which the sentence goes
        from tqdm import tqdm

        tqdm.write(on_one_line(sentence), file=sys.stderr)
    else:
        print(on_one_line(sentence), file=sys.stderr, flush=True)


def on_one_line(sentence: str) -> str:
    """Return a sentence without characters that move the cursor, and without the middle of one that is too long.

    >>> on_one_line("a.csv\\n\\x1b[2J: no such file")
    'a.csv\\\\n\\\\x1b[2J: no such file'
    """
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]} … {sentence[-_LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)


def leave(sentence: str, code: int, *, lost: bool = False) -> NoReturn:
    """Say a sentence and end. Of several processes on a machine the first speaks, or the command that started them.

    Args:
        sentence: why the command ends.
        code: its exit code.
        lost: whether it ends because another process has, which each of them says.
    """
    left = bool(sentence) and leave_word(sentence.removeprefix("pinoise: "), code, lost=lost)
    if sentence and not left and (lost or is_first(of_node=True)):
        with suppress(OSError):  # a terminal that is gone
            say(sentence)
    sys.exit(0 if left and code == STOPPED else code)  # nothing failed, so nothing is started again


def note(*sentences: str) -> None:
    """Print sentences that a user should know but need not act on."""
    for sentence in sentences:
        say(f"note: {sentence}")


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as sentences, each once and without the line of code that raised it."""
    seen: set[str] = set()

    def show(message: Warning | str, *_where: object) -> None:
        sentence = str(message).strip().partition("\n")[0]
        if sentence not in seen:
            seen.add(sentence)
            note(sentence)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # for programmers, not for users of the command
        warnings.showwarning = show  # type: ignore[assignment]  # where it was raised is not said
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


@contextmanager
def reporters(*, epochs: bool) -> Iterator[Callable[[str], Reporter]]:
    """Yield a maker of reporters from their titles.

    On a terminal they are bars that replace one another; elsewhere lines about ``epochs``, or about whole trainings.
    """
    from pinoise.training.callbacks import Bar, Lines, Quiet

    last = -float("inf")

    def make(title: str) -> Reporter:
        nonlocal last
        shown.close()
        if on_terminal():
            return shown.enter_context(closing(Bar(title, leave=False)))
        if epochs:
            return Lines(sys.stderr, every=QUIET_SECONDS)
        if time.monotonic() - last >= QUIET_SECONDS:
            last = time.monotonic()
            say(title)
        return Quiet()

    with ExitStack() as shown:
        yield make


_DEAF_SECONDS = 3.0  # after an interrupt, in which further ones are the same request

# A hang-up comes when a terminal closes; Windows has none.
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_HANGUP = getattr(signal, "SIGHUP", None)


class Interrupts:
    """What a command does on Ctrl-C, or when a scheduler or a terminal asks it to stop: end at once while it starts,
    later unwind, and then hear no more of it."""

    def __init__(self) -> None:
        self.starting = False
        self._interrupted = -float("inf")
        self._again: threading.Timer | None = None

    @property
    def leaving(self) -> bool:
        """Whether an interrupt is under way, so that any error is a consequence of it."""
        return self._interrupted > -float("inf")

    def interrupt(self) -> None:
        """Raise ``KeyboardInterrupt``, but for the repetitions of impatient fingers."""
        if self.starting:  # there is nothing to tidy up, and an import in C turns the exception into another
            if AGENT not in os.environ:  # else the command that started this process says so
                os.write(2, b"stopped\n")
            os._exit(STOPPED)
        repeated = time.monotonic() - self._interrupted < _DEAF_SECONDS
        self._interrupted = time.monotonic()
        if not repeated:
            raise KeyboardInterrupt

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle a request to stop."""
        if number == _HANGUP:
            _leave_terminal()
        self.interrupt()

    def on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Interrupt again where Python dropped an interrupt because it came in a destructor or a callback.

        The signal is sent from another thread: raised here, it would be dropped again.
        """
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        self._interrupted = -float("inf")
        self._again = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
        self._again.daemon = True
        self._again.start()

    def end(self) -> None:
        """Send no interrupt again: the command is over."""
        if self._again is not None:
            self._again.cancel()


_current = Interrupts()


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Listen to requests to stop for the length of a command. Once one was heard, no later one disturbs the way out."""
    global _current
    if not _in_main_thread():
        yield Interrupts()
        return
    _current = interrupts = Interrupts()
    before = _listen(interrupts.on_signal)
    hook_before, sys.unraisablehook = sys.unraisablehook, interrupts.on_unraisable
    try:
        yield interrupts
    finally:
        sys.unraisablehook = hook_before
        interrupts.end()
        for number, handler in before.items():
            signal.signal(number, _ignore if interrupts.leaving else handler)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Yield a function that turns true after SIGINT, SIGTERM or SIGHUP; a second SIGINT interrupts at once.

    So does the first signal as long as nobody has called the function: there is nothing to save yet.

    >>> with stop_on_signal() as should_stop:
    ...     before = should_stop()
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, should_stop()
    (False, True)
    """
    asked = False
    heard = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if number == _HANGUP:
            _leave_terminal()
        if not heard or (asked and number == signal.SIGINT):
            _current.interrupt()
        asked = True

    def should_stop() -> bool:
        nonlocal heard
        heard = True
        return asked

    if not _in_main_thread():
        yield lambda: False  # only the main thread may listen to signals
        return
    before = _listen(ask)
    try:
        yield should_stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Let a handler hear the requests to stop, and return those that heard them before.

    One that is ignored, as a hang-up is under ``nohup``, stays ignored.
    """
    heard = [n for n in STOP_SIGNALS if n == signal.SIGINT or signal.getsignal(n) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. Unlike SIG_IGN, this is not inherited by processes that are started."""


def _leave_terminal() -> None:
    """Send further output nowhere if it went to a terminal that is gone, where to write is an error."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it may be closed
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
