"""The command in a fork of this process, for cases that watch it from outside."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from tests.hostile.reference import command


class Fork(NamedTuple):
    """A running command: its process, and the thread that collects what it prints."""

    pid: int
    printed: list[bytes]
    reader: threading.Thread

    def wait(self) -> tuple[int, str]:
        """Return the exit code, negative for a signal, and all that was printed."""
        _, status = os.waitpid(self.pid, 0)
        self.reader.join()
        return os.waitstatus_to_exitcode(status), b"".join(self.printed).decode(errors="replace")


def fresh_streams() -> None:
    """Give Python new streams for what its files 1 and 2 are now; the old ones may hold text of the parent."""
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )


def leave(code: int) -> NoReturn:
    """End a fork at once, without the clean-up that belongs to its parent."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def start(*arguments: str, before: Callable[[], None] = lambda: None) -> Fork:
    """Start the command in a fork; ``before`` runs in it first."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        os.close(reading)
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            fresh_streams()
            before()
            code = command(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            leave(code)
    os.close(writing)
    printed: list[bytes] = []

    def read() -> None:
        with open(reading, "rb") as stream:  # noqa: PTH123
            printed.append(stream.read())

    reader = threading.Thread(target=read)
    reader.start()
    return Fork(pid, printed, reader)
