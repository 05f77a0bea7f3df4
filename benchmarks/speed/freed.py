"""A step whose freed memory stays with the process against one that asks the system for it again.

What the C library gives back depends on what was freed before, so processes differ: several are timed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import nullcontext
from statistics import median
from typing import Any
from unittest import mock

from pinoise.modes import flushed_denormals
from pinoise.paper import rehearsal
from speed.steps import RANDOM, make_step
from speed.timing import in_new_process

FEATURES, PROCESSES, STEPS = 561, 6, 30


def worker(way: str) -> dict[str, float]:
    """Return the processor's milliseconds and the page faults of a step in this process."""
    returned = mock.patch.object(rehearsal, "keep_freed_memory")
    with returned if way == "returned" else nullcontext():
        step = make_step(RANDOM, FEATURES)
    with flushed_denormals():
        for _ in range(5):
            step()
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
        for _ in range(STEPS):
            step()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return {"milliseconds": 1e3 * (time.process_time() - began) / STEPS, "faults": faults / STEPS}


def measure() -> dict[str, Any]:
    """Return how much longer a step takes if memory is given back, in the usual and in the worst process."""
    found: dict[str, list[dict[str, float]]] = {"kept": [], "returned": []}
    for _ in range(PROCESSES):
        for way, processes in found.items():
            processes.append(in_new_process("freed", way))
    usual = median(each["milliseconds"] for each in found["kept"])
    slower = [each["milliseconds"] / usual for each in found["returned"]]
    ratios = {
        "step that gives memory back / step, median": round(median(slower), 3),
        "step that gives memory back / step, slowest process": round(max(slower), 3),
    }
    return {"ratios": ratios, "processes": found}


if __name__ == "__main__":
    print(json.dumps(worker(sys.argv[1])))
