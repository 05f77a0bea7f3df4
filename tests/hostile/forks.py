"""The command in a fork of this process, for cases that watch it from outside."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

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


def start(*arguments: str, before: Callable[[], None] = lambda: None) -> Fork:
    """Start the command in a fork; ``before`` runs in it first."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", errors="replace") for number in (1, 2))  # noqa: SIM115, PTH123
            before()
            code = command(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    printed: list[bytes] = []

    def read() -> None:
        with open(reading, "rb") as stream:  # noqa: PTH123
            printed.append(stream.read())

    reader = threading.Thread(target=read)
    reader.start()
    return Fork(pid, printed, reader)
