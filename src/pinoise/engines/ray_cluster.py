"""Ray: the cluster that the command runs on, or one of this machine's processes for as long as it runs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any, TypeVar

from pinoise.errors import UserError, needing
from pinoise.evaluation.workers import ENDED
from pinoise.training.processes import LostProcessError

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def connected(*, workers: int | None = None) -> Iterator[Any]:
    """Yield ``ray``, connected to the cluster of RAY_ADDRESS, or to a new one of this machine's processes.

    Args:
        workers: how many processes of a new cluster work at a time; one for every core if None.
    """
    # Before the import. Ray would report its use to its makers, and change to a folder of its own in every worker.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")
    with needing("ray", what="--engine ray"):
        import ray
    ours = not ray.is_initialized()
    if ours:
        _start(ray, workers)
    try:
        with redirect_stdout(sys.stderr):  # where Ray tells of a worker that died; results are printed to the other
            yield ray
    finally:
        if ours:
            ray.shutdown()


def _start(ray: Any, workers: int | None) -> None:
    """Connect to the cluster of RAY_ADDRESS, or start one, without Ray's reports of its progress."""
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        with _kept_handlers():
            if address := os.environ.get("RAY_ADDRESS"):
                ray.init(address=address, **quiet)
            else:
                ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"Ray cannot be reached or started ({' '.join(str(error).split())[:300]}).") from None
    import_module("ray.train")  # which sets levels of its own, also of ray.data
    for name in ("ray", "ray.data", "ray.train"):
        logging.getLogger(name).setLevel(logging.ERROR)


def mapped_on_ray(
    function: Callable[[Item], Result], items: Sequence[Item], *, processes: int | None = None
) -> Iterator[Result]:
    """Yield results as workers of the cluster have them, of which one that dies costs its item: others do it again.

    Args:
        function: what is called, with one item at a time.
        items: its arguments.
        processes: how many work at a time; as many as the cluster has cores, if None.
    """
    if not items:
        return
    with connected(workers=processes) as ray:
        work, left, waiting = ray.put(function), list(items), list[Any]()
        call = ray.remote(num_cpus=1, max_retries=3)(_embed_part)
        while left or waiting:
            while left and len(waiting) < (processes or len(items)):
                waiting.append(call.remote(work, left.pop(0)))
            (done,), waiting = ray.wait(waiting)
            try:
                yield ray.get(done)
            except ray.exceptions.RayError as error:
                raise cause(error) or UserError(ENDED) from error


def _embed_part(work: Callable[[Item], Result], item: Item) -> Result:
    return work(item)


@contextmanager
def _kept_handlers() -> Iterator[None]:
    """Let a request to stop reach those who heard it before the block, in which Ray takes SIGTERM for itself.

    Ray's own handlers print a trace of its C++ code and exit, so that nothing is saved.
    """
    if threading.current_thread() is not threading.main_thread():  # where Python handles no signals
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except SystemExit:  # Ray's answer to a request that came while it started
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cause(error: BaseException) -> UserError | None:
    """Return the sentence that is behind an error of Ray, or None. One on a mistake comes before one on a lost process.

    >>> cause(RuntimeError("a worker failed")) is None
    True
    """
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or any(found is other for other in seen):
            continue
        seen.append(found)
        waiting += [found.__cause__, found.__context__]
        waiting += [getattr(found, name, None) for name in ("cause", "_base_exc")]
        waiting += getattr(found, "worker_failures", {}).values()
    # Ray makes a class of its own of every error, whose text is a traceback; the original is inside.
    ours = [found for found in seen if isinstance(found, UserError) and not type(found).__module__.startswith("ray.")]
    return next((found for found in ours if not isinstance(found, LostProcessError)), next(iter(ours), None))
