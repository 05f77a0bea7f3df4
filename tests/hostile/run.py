"""The long version of the hostile suite: thousands of cases in a pool of processes, and a summary for the documents.

    python -m tests.hostile.run                          # every family; writes benchmarks/results/hostile.json
    python -m tests.hostile.run --only data --seed 3     # one family with other random numbers; writes nothing
    python -m tests.hostile.run --seed 0 --case data/17  # one case again, with all that it printed

A seed and a name reproduce a case. Ctrl-C prints what was found so far and writes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from tests.hostile.case import LIMIT, Case, Kind, Outcome
from tests.hostile.families import SIZES, cases, find_case
from tests.hostile.server import MEMORY, ROOT, Server

RESULT = ROOT / "benchmarks" / "results" / "hostile.json"
KINDS: tuple[Kind, ...] = ("sentence", "right", "failure")
SECONDS = 2.0  # between two lines on progress


class Done(NamedTuple):
    """A case and what came of it."""

    case: Case
    outcome: Outcome
    seconds: float


def run_all(chosen: list[Case], *, processes: int) -> Iterator[Done]:
    """Yield cases as they end. A server that breaks is a fault of the suite and stops it."""
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in chosen:
        waiting.put(case)
    ended: queue.SimpleQueue[Done | BaseException] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        try:
            with contextlib.closing(Server()) as server:
                while not stopped.is_set():
                    case = waiting.get_nowait()
                    began = time.monotonic()
                    outcome = server.run(case.name, case.seed)
                    ended.put(Done(case, outcome, time.monotonic() - began))
        except queue.Empty:
            pass
        except BaseException as error:
            ended.put(error)

    workers = [threading.Thread(target=work) for _ in range(processes)]
    for worker in workers:
        worker.start()
    try:
        for _ in chosen:
            done = ended.get()
            if isinstance(done, BaseException):
                raise done
            yield done
    finally:
        stopped.set()
        for worker in workers:
            worker.join()


def table(counts: dict[str, Counter[str]]) -> list[str]:
    """Return the counts of every family as lines of a table.

    >>> print(*table({"data": Counter(sentence=3, right=1)}), sep="\\n")
    | family | cases | one sentence | right result | failures |
    |---|---|---|---|---|
    | data | 4 | 3 | 1 | 0 |
    | all | 4 | 3 | 1 | 0 |
    """
    rows = {**counts, "all": sum(counts.values(), Counter())}
    lines = ["| family | cases | one sentence | right result | failures |", "|---|---|---|---|---|"]
    for family, counted in rows.items():
        cells = [sum(counted.values()), *(counted[kind] for kind in KINDS)]
        lines.append(f"| {family} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    return lines


def summary(counts: dict[str, Counter[str]], *, seed: int, seconds: float, processes: int) -> dict[str, Any]:
    """Return what the documents quote: counts, seed, limits, version, date and machine."""
    from pinoise.training.device import describe_environment

    return {
        "version": version("pinoise"),
        "seed": seed,
        "cases": sum(map(Counter.total, counts.values())),
        "families": {family: {kind: counted[kind] for kind in KINDS} for family, counted in counts.items()},
        "limits": {"seconds": LIMIT, "memory_gib": MEMORY / 2**30},
        "processes": processes,
        "seconds": round(seconds),
        "environment": describe_environment(),
    }


def main() -> int:
    """Run the suite and return the exit code: 1 if any case failed."""
    parser = argparse.ArgumentParser(description="Run the hostile suite.")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
    parser.add_argument("--only", choices=list(SIZES), action="append", help="one family; repeatable")
    parser.add_argument("--case", help="one case, such as data/17, with all that it printed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="only the cases of the tests")
    asked = parser.parse_args()
    if asked.case is not None:
        return show(find_case(asked.case, asked.seed))
    families = asked.only or list(SIZES)
    chosen = [
        case for family in families for case in cases(family, asked.seed)[: SIZES[family][0 if asked.quick else 1]]
    ]
    counts: dict[str, Counter[str]] = {family: Counter() for family in families}
    failed: list[Done] = []
    began = last = time.monotonic()
    try:
        for done in run_all(_longest_first(chosen), processes=asked.processes):
            counts[done.case.family][done.outcome.kind] += 1
            if done.outcome.kind == "failure":
                failed.append(done)
                print(f"FAILURE {describe(done)}", flush=True)
            if time.monotonic() - last > SECONDS:
                last = time.monotonic()
                total = sum(map(Counter.total, counts.values()))
                print(f"{total} of {len(chosen)} cases, {len(failed)} failures", file=sys.stderr, flush=True)
        whole = True
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        whole = False
    print(*table(counts), sep="\n")
    if whole and asked.only is None and not asked.quick:
        found = summary(counts, seed=asked.seed, seconds=time.monotonic() - began, processes=asked.processes)
        RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 1 if failed or not whole else 0


def _longest_first(chosen: list[Case]) -> list[Case]:
    return sorted(chosen, key=lambda case: -case.limit)


def describe(done: Done) -> str:
    """Return a line about a case that failed, with how to run it again."""
    case, outcome = done.case, done.outcome
    return f"{case.name} --seed {case.seed} [{case.label}] {outcome.cause}: {outcome.detail}".replace("\n", " ")


def show(case: Case) -> int:
    """Run one case and print all about it."""
    print(f"{case.name}: {case.label}")
    print(f"call: {'pinoise ' + ' '.join(map(repr, case.call)) if not callable(case.call) else case.call}")
    os.environ["HOSTILE_SHOW"] = "1"  # the server then prints what the case printed
    with contextlib.closing(Server()) as server:
        outcome = server.run(case.name, case.seed)
    print(f"{outcome.kind} {outcome.cause}: {outcome.detail}")
    return int(outcome.kind == "failure")


if __name__ == "__main__":
    sys.exit(main())
