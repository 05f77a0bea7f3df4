"""Real processes of the command, and how they are struck."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

from tests import commands
from tests.commands import Result
from tests.faults.events import Events
from tests.faults.warm import Fork

Process = subprocess.Popen[str] | Fork
ROOT = Path(__file__).resolve().parents[2]


class Fault(AssertionError):  # noqa: N818 - it is read in "raise Fault"
    """The product did not survive: a state was lost or is another, or a command said something else than expected."""


def start(*arguments: object, where: Path, warm: bool = False) -> Process:
    """Start the command in a folder: a new Python, or a fork of one that has imported the libraries."""
    environ = {"OMP_NUM_THREADS": "1", "PINOISE_CACHE": str(where / "user-cache")}
    if warm:
        return Fork(tuple(map(str, arguments)), where=where, environ=environ)
    return commands.start(*arguments, where=where, environ=environ)


def ended(process: Process) -> Result:
    """Wait for the end of a process. One that hangs is killed and is a fault."""
    return commands.ended(cast("subprocess.Popen[str]", process))


def run(*arguments: object, where: Path, warm: bool = False) -> Result:
    """Run the command to its end, which must be a good one."""
    done = ended(start(*arguments, where=where, warm=warm))
    if done.code:
        raise Fault(f"pinoise {' '.join(map(str, arguments))} ended with {done.code}: {done.err[-2000:]}")
    return done


class Instant(NamedTuple):
    """When a process is struck: some seconds after its start, or after so many changes of files."""

    seconds: float
    changes: int = 0

    def __str__(self) -> str:
        return f"{self.seconds * 1000:.1f} ms after {f'change {self.changes}' if self.changes else 'the start'}"


def strike(process: Process, instant: Instant, events: Events, *, kill: Sequence[int] = (0,)) -> list[int]:
    """Kill a process of the command at an instant. Return it and what it had started.

    Args:
        process: the process, whose output is not read.
        instant: when.
        events: the changes of files that count, watched since before its start.
        kill: who is killed: 0 is the command, and the others are what it has started, by their rank and one.
    """
    seen = 0
    while seen < instant.changes and process.poll() is None:
        seen += changes(events, seconds=0.2)
    try:
        process.wait(timeout=instant.seconds)
        return []
    except subprocess.TimeoutExpired:
        pass
    group = [process.pid, *children_of(process.pid)]
    for number in kill:
        _kill(group[min(number, len(group) - 1)])  # the others may not have been started yet
    return group


def changes(events: Events, *, seconds: float) -> int:
    """Count changes of files, once there are some or the time is over.

    TensorBoard's curves do not count: a training that goes on writes them all again before its first step, where most
    kills would come.
    """
    return sum(not name.startswith("events.out.tfevents") for name in events.read(seconds=seconds))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, in this order."""
    try:
        return sorted(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except FileNotFoundError:
        return []


def gone(pids: Sequence[int], *, limit: float) -> None:
    """Wait until processes have ended. One that has not is a fault, and is killed."""
    deadline = time.monotonic() + limit
    for pid in pids:
        while _runs(pid):
            if time.monotonic() > deadline:
                _kill(pid)
                raise Fault(f"process {pid} was left behind and still ran after {limit:.0f} s")
            time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process runs. One that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
