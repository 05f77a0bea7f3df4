"""Ctrl-C and a polite kill: stop at the next step boundary, with everything saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Yield a function that turns true after SIGINT or SIGTERM; a second SIGINT interrupts at once.

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
        if not heard or (asked and number == signal.SIGINT):
            raise KeyboardInterrupt
        asked = True

    def should_stop() -> bool:
        nonlocal heard
        heard = True
        return asked

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may listen to signals
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield should_stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
