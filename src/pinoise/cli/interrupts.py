"""Ctrl-C and other requests to stop: what is heard, what is asked of training, and how a command leaves.

Nothing here takes long to import, so that a request is heard from the first moment.
"""

from __future__ import annotations

import atexit
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPED = 130  # the exit code of a command that was interrupted
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
