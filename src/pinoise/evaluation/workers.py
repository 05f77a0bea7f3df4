"""A map over shares of the work: in this process, or in several that it starts and that end with it."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import torch

from pinoise.choices import OWN_MODULES
from pinoise.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

ENDED = "a process ended before its work was done: give the command again."

_work: Callable[[Any], Any]  # of a worker


def mapped(function: Callable[[Item], Result], items: Sequence[Item], *, processes: int = 1) -> Iterator[Result]:
    """Yield the results in order, as from ``map``; several processes each take an item at a time.

    >>> list(mapped(abs, [-2, 1]))
    [2, 1]
    """
    if processes == 1 or len(items) < 2:
        yield from map(function, items)
        return
    spawn = get_context("spawn")  # a fork has copies of threads' locks, and waits for threads that it does not have
    ours, theirs = spawn.Pipe()
    begin = (pickle.dumps(function), theirs, list(OWN_MODULES))
    with ours, theirs, ProcessPoolExecutor(min(processes, len(items)), spawn, _begin, begin) as pool:
        try:
            with _requests_held():
                results = pool.map(_call, items)
            yield from results
        except BaseException as error:
            ours.close()  # nobody waits for what the others are in the middle of
            if isinstance(error, BrokenProcessPool):
                raise UserError(ENDED) from None
            raise


def _begin(function: bytes, first: Connection, own_modules: list[str]) -> None:
    """Make this process a worker. The function comes once, as it may hold all rows.

    It comes as bytes, because torch would put tensors into shared memory, of which containers have little.
    """
    global _work
    OWN_MODULES[:] = own_modules
    _work = pickle.loads(function)  # of the process that started this one
    threading.Thread(target=_end_with, args=(first,), daemon=True).start()
    torch.set_num_threads(1)


@contextmanager
def _requests_held() -> Iterator[None]:
    """Let requests to stop wait. Processes that are started here hear of none, also while they import."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(first: Connection) -> None:
    """End this process when the first one has closed its side, or was killed."""
    wait([first])
    os._exit(1)


def _call(item: Any) -> Any:
    return _work(item)
