"""The long version of the hostile suite: thousands of cases in a pool of processes, and a summary for the documents.

    python -m tests.hostile.run                          # every family; writes benchmarks/results/hostile.json
    python -m tests.hostile.run --only data --seed 3     # one family with other random numbers; writes nothing
    python -m tests.hostile.run --seed 0 --case data/17  # one case again, with all that it printed

A seed and a name reproduce a case. Ctrl-C prints what was found so far and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import as_completed
from importlib.metadata import version
from typing import Any

from tests.hostile.case import LIMIT, Case, Kind, Outcome
from tests.hostile.families import SIZES, cases, find_case
from tests.hostile.server import MEMORY, ROOT, run_named, servers
from tqdm import tqdm

RESULT = ROOT / "benchmarks" / "results" / "hostile.json"
KINDS: tuple[Kind, ...] = ("sentence", "right", "failure")


def run_all(chosen: list[Case], *, processes: int) -> Iterator[tuple[Case, Outcome]]:
    """Yield cases and what came of them, as they end. A process of the suite that breaks stops it."""
    with servers(processes) as pool:
        running = {pool.submit(run_named, case.name, case.seed): case for case in chosen}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


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
    from pinoise.training.folder import describe_environment

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
    began, whole = time.monotonic(), False
    try:
        for case, outcome in tqdm(run_all(chosen, processes=asked.processes), total=len(chosen), unit="case"):
            counts[case.family][outcome.kind] += 1
            if outcome.kind == "failure":
                again = f"{case.name} --seed {case.seed} [{case.label}] {outcome.cause}: {outcome.detail}"
                tqdm.write(f"FAILURE {again}".replace("\n", " "))
        whole = True
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    print(*table(counts), sep="\n")
    if whole and asked.only is None and not asked.quick:
        found = summary(counts, seed=asked.seed, seconds=time.monotonic() - began, processes=asked.processes)
        RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return int(not whole or any(counted["failure"] for counted in counts.values()))


def show(case: Case) -> int:
    """Run one case and print all about it."""
    print(f"{case.name}: {case.label}")
    print(f"call: {'pinoise ' + ' '.join(map(repr, case.call)) if not callable(case.call) else case.call}")
    with servers(1) as pool:
        outcome = pool.submit(run_named, case.name, case.seed, show=True).result()
    print(f"{outcome.kind} {outcome.cause}: {outcome.detail}")
    return int(outcome.kind == "failure")


if __name__ == "__main__":
    sys.exit(main())
