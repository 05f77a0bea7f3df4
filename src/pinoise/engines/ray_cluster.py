"""Ray: the cluster that the command runs on, or one of this machine's processes for as long as it runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pinoise.errors import UserError
from pinoise.training.processes import LostProcessError


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
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what it prints is in its log folder too
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'pinoise[ray]'.") from None
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address := os.environ.get("RAY_ADDRESS"):
            ray.init(address=address, **quiet)
        else:
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"Ray cannot be reached or started ({' '.join(str(error).split())[:300]}).") from None
    import ray.data  # whose import sets levels of its own
    import ray.train

    for name in ("ray", "ray.data", "ray.train"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()


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
