"""How processes that train together know which of them is gone, and why.

Every process counts up a number of its own in the store where all have met, once a second, and watches that of the next
one. A process that fails leaves its sentence there. The first process keeps the store. If it hangs, a question to the
store waits for ever, so a second thread counts how long the first one has been waiting.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

import torch

from pinoise.training.processes import Group

dist: Any = torch.distributed  # which does not export its classes to the type checker

BEAT = 1.0  # seconds between two beats
SILENT = 60  # beats without a sign of life after which a process counts as lost
SILENT_AFTER_ERROR = 3  # the same, where an exchange has failed and somebody is known to be gone
FAREWELL = 10.0  # seconds that a process waits for the others to hear of its end

_PATIENCE = timedelta(seconds=10)  # with the store


class Loss(NamedTuple):
    """A process that is gone."""

    rank: int
    who: str  # its process and machine
    reason: str = ""  # its own sentence, if it had the time to say one

    def __str__(self) -> str:
        return f"rank {self.rank} ({self.who})"


class Watch:
    """Threads that give signs of life to the other processes and watch for theirs.

    Args:
        group: the processes, of which this is one.
        port: where all have met.
        on_loss: called if a process is gone and this one does not end within ten seconds of knowing it.
    """

    def __init__(self, group: Group, *, port: int, on_loss: Callable[[Loss], None] | None = None) -> None:
        self._group = group
        self._on_loss = on_loss
        self._limit = SILENT
        self._beats = 0  # of this process that the store has taken
        self._answers = True  # whether the store does
        self._loss: Loss | None = None
        self._found = threading.Event()
        self._ended = threading.Event()
        self._counted = threading.Lock()  # taken once, when this process is counted among those that know the end
        self._names: dict[int, str] = {}
        # A connection of its own, because other threads wait in theirs. torchrun keeps its store when it starts again.
        store = dist.TCPStore(group.address, port, is_master=False, timeout=_PATIENCE, wait_for_workers=False)
        self._store = dist.PrefixStore(f"watch/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)
        self._store.set(f"who/{group.rank}", f"process {os.getpid()} on {socket.gethostname()}")
        self._beating, guarding = (
            threading.Thread(target=work, name="pinoise-watch", daemon=True) for work in (self._beat, self._guard)
        )
        self._beating.start()
        guarding.start()

    def find(self) -> Loss | None:
        """Return who is gone, once an exchange has failed, or None if it cannot be told in a few seconds."""
        self._limit = SILENT_AFTER_ERROR
        if self._group.launcher != "torchrun":  # which names the process itself, and ends this one at once
            self._found.wait(timeout=4 * SILENT_AFTER_ERROR * BEAT)
        return self._loss

    def tell(self, reason: str) -> None:
        """Leave the sentence with which this process ends."""
        if not self._answers:
            return
        with suppress(RuntimeError):
            self._publish(Loss(self._group.rank, self._name(self._group.rank), reason))

    def leave(self) -> None:
        """End without being missed. The first process waits until all know of the end, if it keeps the store."""
        self._ended.set()
        if not self._answers:
            return
        self._beating.join(timeout=_PATIENCE.seconds)  # Python's end must not cut it off in a question to the store
        keeps = self._group.rank == 0 and self._group.launcher != "torchrun"
        deadline = time.monotonic() + FAREWELL
        with suppress(RuntimeError):
            self._store.add(f"left/{self._group.rank}", 1)
            self._count()
            gone = self._loss is not None and not self._loss.reason  # which will never know
            while keeps and time.monotonic() < deadline:
                if self._store.add("knowing", 0) >= self._group.size - gone:
                    return
                time.sleep(0.05)

    def _count(self) -> None:
        if self._counted.acquire(blocking=False):
            self._store.add("knowing", 1)

    def _beat(self) -> None:
        """Give signs of life and look for those of the next process, until one is lost."""
        following = (self._group.rank + 1) % self._group.size
        seen, silent = -1, 0
        with suppress(RuntimeError):
            self._names[0] = self._store.get("who/0").decode()  # as long as it can be asked
        while self._loss is None and not self._ended.wait(timeout=BEAT):
            try:
                self._store.add(f"beat/{self._group.rank}", 1)
                self._loss = self._told()
                beat = self._store.add(f"beat/{following}", 0)
                silent = 0 if beat != seen or self._store.add(f"left/{following}", 0) else silent + 1
                seen = beat
                if self._loss is None and silent >= self._limit:
                    self._loss = self._publish(Loss(following, self._name(following)))
                if self._loss is not None:
                    self._count()
            except RuntimeError:
                self._lose_store()
            self._beats += 1
        if self._loss is not None:
            self._found.set()

    def _guard(self) -> None:
        """Count the beats that the store leaves without an answer, and see to it that a loss ends this process."""
        seen, silent = -1, 0
        while not self._found.wait(timeout=BEAT) and not self._ended.is_set():
            seen, silent = self._beats, 0 if self._beats != seen else silent + 1
            if silent >= self._limit:
                self._lose_store()
                self._found.set()
        # The main thread hears of it from a failed exchange, unless it waits in one that does not fail.
        if self._loss is not None and not self._ended.wait(timeout=FAREWELL) and self._on_loss is not None:
            self._on_loss(self._loss)

    def _lose_store(self) -> None:
        """Take it that the store is gone, and with it the first process, or the way to it."""
        self._answers = False
        self._loss = self._loss or Loss(0, self._names.get(0, f"on {self._group.address}"))

    def _told(self) -> Loss | None:
        """Return what a process has said about its own end, or another about it."""
        return Loss(*json.loads(self._store.get("told"))) if self._store.check(["told"]) else None

    def _publish(self, loss: Loss) -> Loss:
        """Say that a process is gone, and return the one of which it was said first."""
        return Loss(*json.loads(self._store.compare_set("told", "", json.dumps(loss))))

    def _name(self, rank: int) -> str:
        if rank not in self._names and self._store.check([f"who/{rank}"]):
            self._names[rank] = self._store.get(f"who/{rank}").decode()
        return self._names.get(rank, "of which nothing is known")
