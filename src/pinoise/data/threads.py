"""Work on many items at once, in threads: for libraries that release Python's lock while they work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_BLOCK = 4096  # items given to the threads at once

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, bar: str | None = None
) -> Iterator[Result]:
    """Yield the results in order, as from ``map``. ``bar`` names a progress bar.

    >>> list(in_threads(abs, [-2, 1]))
    [2, 1]
    """
    from tqdm import tqdm

    with (
        ThreadPoolExecutor(max_workers=_cores()) as pool,
        tqdm(total=len(items), desc=bar, unit="image", disable=bar is None) as shown,
    ):
        for start in range(0, len(items), _BLOCK):
            for result in pool.map(function, items[start : start + _BLOCK]):
                shown.update()
                yield result


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
