"""A pool of two processes that train together, on the CPU through gloo, for many small cases."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed

PROCESSES = 2
Everywhere = Callable[..., list[Any]]


@contextmanager
def pool_of_two() -> Iterator[Everywhere]:
    """Yield a function that calls another, of a module, in both processes at once, and returns what each returned."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    fork = multiprocessing.get_context("fork")  # which need not import torch again
    pools = [
        ProcessPoolExecutor(1, mp_context=fork, initializer=_join, initargs=(rank, port)) for rank in range(PROCESSES)
    ]

    def everywhere(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [future.result(timeout=120) for future in [pool.submit(function, *arguments) for pool in pools]]

    try:
        yield everywhere
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _join(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=PROCESSES)
