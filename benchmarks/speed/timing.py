"""Times of tasks that take turns, so that a busy machine slows all of them equally.

Work of one thread is timed by the processor's clock, which stops while other programs run. What waits for disks or for
other processes is timed by the clock on the wall.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

Task = Callable[[], object]
Times = dict[str, list[float]]


def in_turns(
    tasks: Mapping[str, Task], *, turns: int, repeats: int = 1, clock: Callable[[], float] = time.process_time
) -> Times:
    """Return the seconds of each task in every turn, after one turn that warms up.

    >>> sorted(in_turns({"a": lambda: None, "b": lambda: None}, turns=2))
    ['a', 'b']
    """
    seconds: Times = {name: [] for name in tasks}
    for turn in range(turns + 1):
        for name, task in tasks.items():
            began = clock()
            for _ in range(repeats):
                task()
            if turn:
                seconds[name].append((clock() - began) / repeats)
    return seconds


def ratio(times: Times, of: str, to: str) -> float:
    """Return the median over turns of one task's time to another's in the same turn.

    >>> ratio({"a": [2.0, 4.0, 9.0], "b": [1.0, 2.0, 3.0]}, "a", "b")
    2.0
    """
    return round(median(a / b for a, b in zip(times[of], times[to], strict=True)), 3)


def milliseconds(times: Times) -> dict[str, float]:
    """Return the median of every task.

    >>> milliseconds({"a": [0.001, 0.003, 0.002]})
    {'a': 2.0}
    """
    return {name: round(1e3 * median(each), 3) for name, each in times.items()}


def in_new_process(module: str, *arguments: str, threads: int = 1) -> Any:
    """Run a module of this folder in a process of its own and return the JSON that it prints last."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    asked = [sys.executable, "-m", f"speed.{module}", *arguments]
    folder = Path(__file__).parent.parent
    done = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=folder, env=environment)
    return json.loads(done.stdout.splitlines()[-1])
