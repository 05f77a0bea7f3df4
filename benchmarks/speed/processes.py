"""Steps in one and in two processes, and a model of their time over processes, batch and network.

The model is T(k, m) = s (a m/k + c m²/k + b) + communication for k processes and batches of m rows: a row's own work,
the similarities of its views with those of all processes, what a step costs whatever its batch, and what is exchanged.
One process with two sizes of batches gives a and b, operations give c, and two processes give latency and bandwidth. s
is how much longer a step takes beside a process that trains for itself on the same machine: they share caches, memory
and clock. It is 1 for processes on machines of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any, NamedTuple

import torch
from torch import distributed as dist

from pinoise.modes import flushed_denormals
from pinoise.paper.rehearsal import Rehearsal, training_step
from pinoise.training.config import parse_settings
from pinoise.training.run import machine_of
from speed.steps import WIDTHS, make_large_product
from speed.timing import in_new_process, in_turns

FEATURES, ROWS = 561, 4096
BATCHES = (256, 1024)  # of all processes together, for the check
ALONE = (128, 1024)  # of one process, which give the constants: from the least share above to the largest
STEPS, EXCHANGES = 30, 100
NETWORKS = {"10 Gb/s, 50 µs": (1.25e9, 50e-6), "100 Gb/s, 5 µs": (12.5e9, 5e-6)}
"""Bytes a second and seconds of latency of common networks, for the extrapolation."""

PROCESSES = (1, 2, 4, 8, 16, 32, 64)
WEIGHTS = sum((i + 1) * o for i, o in zip((FEATURES, *WIDTHS), WIDTHS, strict=False))
PROJECTION = WIDTHS[-1]


class Model(NamedTuple):
    """The constants of T, in seconds."""

    row: float  # a
    pair: float  # c
    fixed: float  # b

    def seconds(self, processes: int, batch: int, bandwidth: float, latency: float, *, slowdown: float = 1.0) -> float:
        """Return T(k, m) on a network. Exchanges go around a ring, and none is hidden behind the computation.

        Args:
            processes: k.
            batch: m, the rows of all processes.
            bandwidth: bytes a second.
            latency: of an exchange, in seconds.
            slowdown: s.

        >>> Model(row=1e-4, pair=0, fixed=0).seconds(1, 100, bandwidth=1e9, latency=1e-3)
        0.01
        """
        k, z = processes, 4 * 2 * batch * PROJECTION  # bytes of the projections of both views
        computation = self.row * batch / k + self.pair * batch**2 / k + self.fixed
        around = (k - 1) / k
        volume = 2 * around * 4 * WEIGHTS + around * z + 2 * around * z  # gradients; projections, there and back
        return slowdown * computation + volume / bandwidth + 5 * (k - 1) * latency  # 2 + 1 + 2 rounds


def worker(batch: int) -> dict[str, Any]:
    """Time steps in this process, one of those that torchrun started, or alone. Also time bare exchanges."""
    settings = parse_settings({"training": {"batch_size": batch, "device": "cpu"}})
    machine = machine_of(settings.training, together=True)
    rehearsal = Rehearsal(settings, (FEATURES,), ROWS)
    share = batch // machine.size
    step = training_step(settings, rehearsal.model, rehearsal.rows, batch_size=share, machine=machine)
    with flushed_denormals():
        seconds = _quiet(step, STEPS)
    found: dict[str, Any] = {"rank": machine.rank, "step": seconds}
    if machine.size > 1:
        one, all_weights = torch.zeros(1), torch.zeros(WEIGHTS)
        found |= {"one": _quiet(lambda: dist.all_reduce(one), EXCHANGES)}
        found |= {"weights": _quiet(lambda: dist.all_reduce(all_weights), EXCHANGES // 4)}
    return found


def _quiet(task: Any, times: int) -> float:
    """Return the lowest decile of a task's wall times: other programs want the same cores."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - began)
    return quantiles(seconds[3:], n=10)[0]


def run(processes: int, batch: int) -> dict[str, Any]:
    """Return what the first of several processes measured."""
    if processes == 1:
        return in_new_process("processes", str(batch))  # type: ignore[no-any-return]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    asked = [sys.executable, *launcher, "-m", "speed.processes", str(batch)]
    done = subprocess.run(asked, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def beside(batch: int) -> float:
    """Return the seconds of a step in each of two processes that train at once, each for itself."""
    with ThreadPoolExecutor(2) as both:
        return fmean(found["step"] for found in both.map(lambda _: run(1, batch), range(2)))


def measure() -> dict[str, Any]:
    """Return the constants, measured and calculated steps, and the extrapolation."""
    alone = {batch: run(1, batch)["step"] for batch in sorted({*BATCHES, *ALONE})}
    both = {batch: run(2, batch) for batch in BATCHES}
    shared = fmean(beside(batch // 2) / run(1, batch // 2)["step"] for batch in BATCHES)
    slowdown = max(1.0, shared)  # a process beside it makes no step faster: that is chance
    large, operations = make_large_product()
    rate = operations / min(in_turns({"large": large}, turns=9)["large"])
    pair = 3 * 2 * 2 * 2 * PROJECTION / rate  # three products of (2m, 2m) matrices with (2m, dim) ones
    small, big = ALONE
    steps = {batch: alone[batch] - pair * batch**2 for batch in ALONE}
    row = (steps[big] - steps[small]) / (big - small)
    model = Model(row, pair, max(0.0, steps[small] - row * small))
    least = both[BATCHES[0]]
    latency = least["one"] / 2  # there and back
    bandwidth = 4 * WEIGHTS / max(least["weights"] - least["one"], 1e-9)
    checked, ratios = [], {"step beside another process / alone": round(shared, 3)}
    for batch in BATCHES:
        found = {1: alone[batch], 2: both[batch]["step"]}
        calculated = {k: model.seconds(k, batch, bandwidth, latency, slowdown=slowdown if k > 1 else 1) for k in found}
        checked += [{"processes": k, "batch": batch, "measured": found[k], "calculated": calculated[k]} for k in found]
        ratios[f"two processes / one, steps a second, batch {batch}"] = round(found[1] / found[2], 3)
        ratios[f"calculated / measured step of two processes, batch {batch}"] = round(calculated[2] / found[2], 3)
    extrapolated = [
        {"network": name, "batch": batch, "processes": k, "seconds": model.seconds(k, batch, *network)}
        for name, network in NETWORKS.items()
        for batch in (256, 4096)
        for k in PROCESSES
    ]
    constants = {**model._asdict(), "latency": latency, "bandwidth": bandwidth, "slowdown": slowdown}
    constants |= {"weights": WEIGHTS, "rate": rate}
    return {"ratios": ratios, "constants": constants, "checked": checked, "extrapolated": extrapolated}


if __name__ == "__main__":
    timed = worker(int(sys.argv[1]))
    if timed["rank"] == 0:
        print(json.dumps(timed), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()  # whose threads would abort a process that ends before them
