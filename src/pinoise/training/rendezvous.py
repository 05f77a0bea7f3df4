"""How processes that train together start, meet, and notice that one of them is gone."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch

from pinoise.errors import UserError
from pinoise.training.processes import LATER, Group, LostProcessError, is_left, mark
from pinoise.training.watch import Loss, Watch

dist: Any = torch.distributed  # which does not export its classes to the type checker

_ATTEMPT = timedelta(seconds=2)  # in which a connection is tried; Ctrl-C is heard between two attempts
LAST_WAIT = 20.0  # seconds that the first process gives those that it started to end by themselves
_QUIET = 30.0  # seconds of waiting without a word


def join(group: Group, *, wait: int, device: torch.device) -> int | None:
    """Start the other processes of this node, where pinoise does that, and meet all others.

    Return the port where they have met, or None if this process belongs to a group already.

    Args:
        group: the processes, of which this is one.
        wait: the seconds after which a process that has not come is given up.
        device: what this process trains on.
    """
    if not dist.is_available():
        raise UserError(f"{group.size} processes were asked for, but this build of torch trains in one: start one.")
    if dist.is_initialized():
        return None
    deadline = time.monotonic() + wait
    store = _open_store(group, deadline, wait)
    started: list[subprocess.Popen[bytes]] = []
    if group.launcher == "pinoise" and group.local_rank == 0:
        started = _start_others(group._replace(port=store.port))
    os.environ.update(mark(group, parent=os.getppid()))
    _meet(group, store, started, deadline, wait)
    store.set_timeout(timedelta(minutes=5))  # in which those that have met connect to one another
    on_gpu = device.type == "cuda"
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        store=dist.PrefixStore("group", store),
        rank=group.rank,
        world_size=group.size,
        device_id=device if on_gpu else None,
    )
    if on_gpu:
        atexit.register(dist.destroy_process_group)
    port: int = store.port
    return port


@dataclass
class _Ties:
    """What binds this process to the others of its group."""

    watch: Watch | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    last_words: Callable[[Loss], None] | None = None


_ties = _Ties()


def watch_over(group: Group, *, port: int) -> None:
    """Let the processes of the group, which have met, know of one another's end from now on."""
    _ties.watch = Watch(group, port=port, on_loss=_ties.last_words)


@contextmanager
def noticing_losses(resume: str, *, say: Callable[[str], None]) -> Iterator[None]:
    """Turn the end of another process of the group into one sentence, and tell the others of an end of this one.

    Args:
        resume: how to go on, with the command to give.
        say: says a sentence. It is used, in another thread, if the other process gives no sign of life and this one
            waits for it in an exchange that cannot be interrupted. This process then ends at once.
    """

    def last_words(loss: Loss) -> None:
        say(_sentence(loss, resume))
        _end(_ties.started)
        os._exit(2)

    _ties.last_words = last_words
    try:
        yield
    except (LostProcessError, KeyboardInterrupt):
        raise
    except Exception as error:
        watch = _ties.watch
        if is_loss(error):
            raise LostProcessError(_sentence(None if watch is None else watch.find(), resume)) from None
        if watch is not None:
            watch.tell(str(error).partition("\n")[0] or type(error).__name__)
        raise
    finally:
        if _ties.watch is not None:
            _ties.watch.leave()
            _ties.watch = None


def from_checkpoint(command: str) -> str:
    """Return how training goes on, for ``noticing_losses``.

    >>> from_checkpoint("pinoise train --resume runs/mine")
    'go on from the last checkpoint with: pinoise train --resume runs/mine'
    """
    return f"go on from the last checkpoint with: {command}"


def _sentence(loss: Loss | None, resume: str) -> str:
    """Return what a process says when it stops because of another."""
    size = dist.get_world_size()
    go_on = f"so this one stops; {resume}"
    if loss is None:
        return f"another of the {size} processes that train together ended or cannot be reached, {go_on}"
    if not loss.reason:
        return f"{loss}, one of {size} processes that train together, ended or cannot be reached, {go_on}"
    return f"{loss}, one of {size} processes that train together, failed ({loss.reason.rstrip('.')}), {go_on}"


def is_loss(error: BaseException) -> bool:
    """Whether an error means that another process of the group is gone. Gloo's errors are known by their text alone.

    >>> is_loss(RuntimeError("shapes do not match"))
    False
    """
    if not (dist.is_available() and dist.is_initialized() and isinstance(error, RuntimeError)):
        return False
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _open_store(group: Group, deadline: float, wait: int) -> Any:
    """Return the place where processes meet: opened by the first, found by the others."""
    if group.rank == 0:
        try:
            here = ("127.0.0.1", group.port)  # it listens at every address of this machine
            return dist.TCPStore(*here, is_master=True, timeout=_ATTEMPT, wait_for_workers=False)
        except RuntimeError:
            raise UserError(f"port {group.port} cannot be opened on this machine: change MASTER_PORT.") from None
    waiting = _Waiting(group, group.port, wait)
    while True:
        try:
            # A plain connection first: torch's own prints a stack trace if it fails.
            socket.create_connection((group.address, group.port), timeout=_ATTEMPT.seconds).close()
            return dist.TCPStore(group.address, group.port, is_master=False, timeout=_ATTEMPT, wait_for_workers=False)
        except (OSError, UnicodeError, RuntimeError):
            if is_left():
                raise UserError(f"the first of the {group.size} processes ended before training began.") from None
            if time.monotonic() > deadline:
                raise UserError(
                    f"no process answered at {group.address}:{group.port} in {wait} s: start the first of the "
                    f"{group.size} processes there, or raise training.wait."
                ) from None
        waiting.say(f"the first of {group.size} processes")
        time.sleep(0.1)


def _start_others(group: Group) -> list[subprocess.Popen[bytes]]:
    """Start the later processes of this node with the command that started this one."""
    main = sys.modules["__main__"]
    named = main.__spec__.name if main.__spec__ is not None else None
    program = ["-m", named] if named else [os.path.abspath(sys.argv[0])]  # noqa: PTH100
    command = [sys.executable, "-X", LATER, *program, *sys.argv[1:]]
    ranks = range(group.rank + 1, group.rank + group.per_node)
    started = [
        subprocess.Popen(command, env={**os.environ, **mark(group._replace(rank=rank), parent=os.getpid())})
        for rank in ranks
    ]
    atexit.register(_end, started)
    _ties.started = started
    return started


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """Leave no process behind. Each ends by itself when training ends, or when it sees that this process is gone."""
    for process in started:
        try:
            process.wait(timeout=LAST_WAIT)
        except subprocess.TimeoutExpired:
            process.kill()


def _meet(group: Group, store: Any, started: list[subprocess.Popen[bytes]], deadline: float, wait: int) -> None:
    """Wait until every process has come."""
    here = 0
    waiting = _Waiting(group, store.port, wait)
    try:
        here = store.add("here", 1)
        while here < group.size:
            if time.monotonic() > deadline:
                raise UserError(
                    f"{here} of {group.size} processes came to {group.address}:{store.port} in {wait} s: start the "
                    "others in time, or raise training.wait."
                )
            ended = [process.poll() for process in started if process.poll() is not None]
            if ended:
                raise UserError(f"a process of this run ended with code {ended[0]} before training began.")
            waiting.say(f"{group.size - here} of {group.size} processes")
            time.sleep(0.02)
            here = store.add("here", 0)
    except RuntimeError:
        raise UserError(
            f"the first process at {group.address}:{group.port} ended when {here} of {group.size} had come: "
            "its own message says why."
        ) from None


class _Waiting:
    """Says once, and on one node only after a while, what a process waits for."""

    def __init__(self, group: Group, port: int, wait: int) -> None:
        self._silent = group.local_rank > 0
        self._from = time.monotonic() + (_QUIET if group.nodes == 1 else 0.0)
        self._where = f"at {group.address}:{port}, for at most {wait} s"

    def say(self, what: str) -> None:
        """Say it if it is time."""
        if not self._silent and time.monotonic() >= self._from:
            self._silent = True
            warnings.warn(f"waiting for {what} {self._where}", stacklevel=4)
