"""The long version of the fault suite: hundreds of kills at random instants over real runs, and a summary of them.

    python -m tests.faults.run                                    # all; writes benchmarks/results/faults.json
    python -m tests.faults.run --only images --seed 3             # one family with other random numbers; writes nothing
    python -m tests.faults.run --seed 0 --case 'two processes/2'  # one case again, with all that happens to it

A seed and a name repeat the instants that were drawn. When a process writes a file still depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.faults.commands import ROOT
from tests.faults.families import FAMILIES, TRAININGS, wanted
from tests.faults.kills import Case, Struck, Whole, kill_training, kill_verb, whole_training, whole_verb

RESULT = ROOT / "benchmarks" / "results" / "faults.json"
COMPARED = (
    "bytes of weights, units, classifier, settings and record of the data; bytes of the embedding that another process "
    "writes; metrics.csv and TensorBoard's curves without times; content of the last checkpoint without seconds; names "
    "of files; after every kill: the newest checkpoint is intact and no older than before"
)


def _whole(name: str, home: Path) -> Whole:
    """What the undisturbed command of a family does, in a folder of its own."""
    home.mkdir(parents=True)
    return (whole_training if name in TRAININGS else whole_verb)(name, home, warm=True)


def _kill(case: Case) -> Struck:
    return (kill_training if case.family in TRAININGS else kill_verb)(case)


def run_family(name: str, seed: int, *, most: int) -> tuple[Counter[str], list[str]]:
    """Run cases of a family until it has its kills. Return counts and what failed."""
    counts, failures = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        whole = _whole(name, Path(folder, "home"))
        while counts["kills"] < most:
            case = Case(name, counts["cases"], seed, whole, warm=True)
            counts["cases"] += 1
            try:
                struck = _kill(case)
                counts["kills"] += struck.kills
                counts["while_writing"] += struck.while_writing
            except Exception as fault:  # one of the suite itself is shown, too, and loses no other case
                failures.append(f"{name}/{case.number} --seed {seed}: {type(fault).__name__}: {fault}")
                print(f"FAILURE {failures[-1]}", flush=True)
                counts["kills"] += 1
            print(f"{name}: {counts['kills']} kills, {len(failures)} failures", file=sys.stderr, flush=True)
    return counts, failures


def show(name: str, seed: int) -> int:
    """Run one case again and print all about it."""
    family, _, number = name.rpartition("/")
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(_kill(Case(family, int(number), seed, _whole(family, Path(folder, "home")), note=print, warm=True)))
        except AssertionError as fault:
            print(f"FAILURE {fault}")
            return 1
    return 0


def summary(counts: dict[str, Counter[str]], failures: list[str], *, seed: int, seconds: float) -> dict[str, Any]:
    """Return what the documents quote."""
    from pinoise.training.folder import describe_environment

    names = ("kills", "while_writing", "cases")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "command": f"python -m tests.faults.run {shlex.join(sys.argv[1:])}".strip(),
        "commit": commit.stdout.strip(),
        "seed": seed,
        "kills": sum(counted["kills"] for counted in counts.values()),
        "while_writing": sum(counted["while_writing"] for counted in counts.values()),
        "failures": failures,
        "killed": "forks of a process that has imported the libraries, and the new processes that they start",
        "compared": COMPARED,
        "families": {family: {name: counted[name] for name in names} for family, counted in counts.items()},
        "seconds": round(seconds),
        "environment": describe_environment(),
    }


def main() -> int:
    """Run the suite and return the exit code: 1 if a case failed."""
    parser = argparse.ArgumentParser(description="Run the fault suite.")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
    parser.add_argument("--only", choices=FAMILIES, action="append", help="one family; repeatable")
    parser.add_argument("--case", help="one case, such as images/2, with all that happens to it")
    parser.add_argument("--kills", type=int, help="of every family, instead of its own number")
    parser.add_argument("--processes", type=int, default=1, help="families at a time")
    asked = parser.parse_args()
    if asked.case is not None:
        return show(asked.case, asked.seed)
    os.environ |= {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}  # for the process that is forked
    began, families = time.monotonic(), asked.only or FAMILIES

    def run_one(family: str) -> tuple[Counter[str], list[str]]:
        return run_family(family, asked.seed, most=asked.kills or wanted(family))

    with ThreadPoolExecutor(asked.processes) as pool:
        found = dict(zip(families, pool.map(run_one, families), strict=True))
    counts = {family: counted for family, (counted, _) in found.items()}
    failures = [failure for _, failed in found.values() for failure in failed]
    result = summary(counts, failures, seed=asked.seed, seconds=time.monotonic() - began)
    print(json.dumps(result, indent=2))
    if asked.only is None and asked.kills is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
