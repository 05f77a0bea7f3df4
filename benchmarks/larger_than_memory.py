"""Memory and step rate of data that is read in pieces: does memory grow with rows, and do steps wait for the disk?

Synthetic Parquet has the shape of MSLR-WEB30K: 136 features, a third of them counts, and a relevance. A mixed table has
numbers with gaps, categories, truth values and dates. `pinoise train` for one epoch and `pinoise embed` into a folder
of parts run with the default settings as commands of their own, with one thread, and the peak of their resident memory
is what the system says of them. The step rate is measured in one process, on 10⁶ rows, in turns of steps on rows in
files and on rows in memory.

    python benchmarks/larger_than_memory.py --scratch FOLDER
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from machine import commit
from pinoise.choices import BATCH_SIZE
from pinoise.files import write_json
from pinoise.training.folder import describe_environment

FEATURES, COUNTS, FACTORS = 136, 40, 16
GROUP = 65_536  # rows of a row group
TURNS, STEPS = 15, 40
SETS = {"ranking-1000000": True, "ranking-10000000": False, "mixed-1000000": True}  # and whether steps are timed
RESULT = Path(__file__).parent / "results" / "larger_than_memory.json"


def ranking(rows: int) -> Iterator[Any]:
    """Yield row groups of the shape of MSLR-WEB30K."""
    random = np.random.default_rng(0)
    mixing = random.normal(size=(FACTORS, FEATURES)).astype(np.float32)
    names = [*(f"f{number}" for number in range(FEATURES)), "relevance"]
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        z = random.standard_normal((size, FACTORS), dtype=np.float32)
        x = z @ mixing + 0.5 * random.standard_normal((size, FEATURES), dtype=np.float32)
        x[:, :COUNTS] = np.floor(3 * np.exp(0.3 * x[:, :COUNTS]))
        relevance = (z[:, 0] > 0).astype(np.int64) + (z[:, 1] > 1)
        yield pa.table([*x.T.copy(), relevance], names=names)


def mixed(rows: int) -> Iterator[Any]:
    """Yield row groups with gaps, categories, truth values and dates."""
    random = np.random.default_rng(1)
    towns = np.array([f"town {number}" for number in range(30)])
    streets = np.array([f"street {number}" for number in range(2000)])
    first = datetime.date(2020, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        kind = random.integers(3, size=size)
        columns: dict[str, Any] = {}
        for number in range(20):
            values = random.normal(kind * (number % 3), 1 + number)
            columns[f"number{number}"] = pa.array(values, mask=random.random(size) < 0.1)
        columns["town"] = pa.array(towns[(random.zipf(1.5, size) + kind) % 30], mask=random.random(size) < 0.05)
        columns["street"] = pa.array(streets[random.zipf(1.2, size) % 2000])
        columns["member"] = pa.array(random.random(size) < 0.3)
        columns["since"] = pa.array((first + random.integers(0, 1500, size)).astype(np.int32), pa.int32()).cast(
            pa.date32()
        )
        columns["class"] = pa.array(np.array(["a", "b", "c"])[kind])
        yield pa.table(columns)


def write(path: Path, groups: Iterator[Any]) -> None:
    """Write row groups as they are made."""
    if path.exists():
        return
    head = next(groups)
    with pyarrow.parquet.ParquetWriter(path, head.schema, compression="lz4") as writer:
        writer.write_table(head)
        for group in groups:
            writer.write_table(group)


def command(*arguments: str, scratch: Path) -> dict[str, float]:
    """Run a command of pinoise that keeps rows in ``scratch``, and return its time and the peak of its memory."""
    began = time.perf_counter()
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "PINOISE_CACHE": str(scratch)}
    process = subprocess.Popen([sys.executable, "-m", "pinoise", *arguments], stdout=subprocess.DEVNULL, env=one_thread)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"pinoise {' '.join(arguments)} ended with {process.returncode}")
    return {"seconds": round(time.perf_counter() - began, 1), "peak_mb": round(usage.ru_maxrss / 1024)}


def epoch_and_embedding(path: Path, label: str, rows: int, scratch: Path) -> dict[str, Any]:
    """Train one epoch on a file, and embed it."""
    run, out = scratch / f"run-{path.stem}", scratch / f"embedding-{path.stem}"
    for folder in (run, out):
        shutil.rmtree(folder, ignore_errors=True)
    data = ["--data", str(path), "--label", label, "--set", "data.stream=always"]
    trained = command("train", *data, "--out", str(run), "--epochs", "1", scratch=scratch)
    kept = sum(file.stat().st_size for file in scratch.glob(f"rows/{path.stem}-*/*"))
    embedded = command("embed", str(run), "--data", str(path), "--out", f"{out}/", scratch=scratch)
    parts = sorted(out.glob("*.parquet"))
    found = sum(pyarrow.parquet.read_metadata(part).num_rows for part in parts)
    result = {
        "data": path.stem,
        "rows": rows,
        "source_gb": round(path.stat().st_size / 1e9, 2),
        "rows_on_disk_gb": round(kept / 1e9, 2),
        "train": trained,
        "embed": {**embedded, "parts": len(parts), "rows": found},
    }
    shutil.rmtree(out)
    return result


def rates(path: str, label: str) -> None:
    """Print the steps a second on rows in files and in memory, and their ratio: in turns, medians."""
    import torch

    from pinoise.data import ReadOptions, make_rows, open_for_training
    from pinoise.modes import Randomness
    from pinoise.training.build import build_standardizer, seeded_model
    from pinoise.training.config import parse_settings
    from pinoise.training.loop import make_optimizer, upcoming
    from pinoise.views import Batch

    settings = parse_settings({"training": {"epochs": 1}})
    batch = settings.training.batch_size
    doing = {}
    for stream in ("never", "always"):
        options = ReadOptions(label=label, stream=stream)
        data, _ = open_for_training(path, options)
        standardizer = build_standardizer(settings, data.train.x, spans=data.spans)
        rows = make_rows(data.train.x, standardizer)
        model = seeded_model(settings, standardizer, rows)
        adam = make_optimizer(model, settings.training, torch.device("cpu"))
        plan = {"seed": 0, "per_epoch": len(rows) // batch, "share": batch, "processes": 1, "rank": 0}
        gathered = upcoming(rows, torch.arange(0), range((TURNS + 1) * STEPS), **plan)
        doing[stream] = model, adam, gathered, Randomness(0)
        del data
    seconds: dict[str, list[float]] = {stream: [] for stream in doing}
    for turn in range(TURNS + 1):
        for stream, (model, adam, gathered, random) in doing.items():
            began = time.perf_counter()
            for step in range(turn * STEPS, (turn + 1) * STEPS):
                numbers, x = next(gathered)
                loss = model(Batch(x, numbers, random=random)).loss
                adam.zero_grad()
                loss.backward()
                adam.step()
                with model.drawing_from(random):
                    model.after_step(step, (TURNS + 1) * STEPS)
            seconds[stream].append(time.perf_counter() - began)
    memory, files = (seconds[stream][1:] for stream in ("never", "always"))  # the first turn warms up
    ratio = statistics.median(held / streamed for held, streamed in zip(memory, files, strict=True))
    rate = [STEPS / statistics.median(found) for found in (memory, files)]
    print(f"RATES {rate[0]:.2f} {rate[1]:.2f} {ratio:.3f}")


def step_rates(path: Path, label: str, scratch: Path) -> dict[str, float]:
    """Measure step rates in a process of their own."""
    done = subprocess.run(
        [sys.executable, __file__, "--rates", str(path), label],
        env={**os.environ, "PINOISE_CACHE": str(scratch)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = next(line for line in done.stdout.splitlines() if line.startswith("RATES")).split()[1:]
    return dict(zip(("steps_in_memory", "steps_in_files", "ratio"), map(float, found), strict=True))


def measured(name: str, scratch: Path, *, rated: bool) -> dict[str, Any]:
    """Measure one set, whose name has its kind and rows."""
    kind, _, rows = name.partition("-")
    make, label = {"ranking": (ranking, "relevance"), "mixed": (mixed, "class")}[kind]
    path = scratch / f"{name}.parquet"
    write(path, make(int(rows)))
    found = epoch_and_embedding(path, label, int(rows), scratch)
    return {**found, "step_rate": step_rates(path, label, scratch)} if rated else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scratch", type=Path, default=Path("scratch"), help="a folder with 20 GB free; emptied in the end"
    )
    parser.add_argument("--only", nargs="+", default=list(SETS), help="measure these again, and leave the others")
    parser.add_argument("--rates", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rates:
        rates(*arguments.rates)
        return
    measured_commit = commit()  # before the file of results changes
    results = json.loads(RESULT.read_text())["results"] if RESULT.exists() else {}
    for name in arguments.only:
        folder = arguments.scratch / name
        folder.mkdir(parents=True, exist_ok=True)
        found = measured(name, folder, rated=SETS.get(name, True))
        shutil.rmtree(folder)
        results[name] = {**found, "environment": {**describe_environment(), "commit": measured_commit}}
        print(name, found, flush=True)
    ranked = [results[name] for name in SETS if name.startswith("ranking") and name in results]
    smallest, largest = ranked[0], ranked[-1]
    grown = {verb: round(largest[verb]["peak_mb"] / smallest[verb]["peak_mb"], 3) for verb in ("train", "embed")}
    about = {"command": "python benchmarks/larger_than_memory.py", "seed": 0}
    about |= {"turns": TURNS, "steps_in_a_turn": STEPS, "batch_size_of_timed_steps": BATCH_SIZE}
    write_json(RESULT, {**about, "largest_to_smallest_peak": grown, "results": results})


if __name__ == "__main__":
    main()
