"""Our kNN against scikit-learn's classifier: predictions, seconds and memory.

Predictions are timed in turns in one process, and ratios are medians over the turns. Memory is the peak of a separate
process beyond the data. Data are standardised, as `raw features` in comparisons, or embedded by an untrained encoder.

    PINOISE_DATA=FOLDER python benchmarks/knn.py
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from pinoise.data import load
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed
from pinoise.evaluation.knn import NEIGHBOURS, knn_predict
from pinoise.files import write_json
from pinoise.networks import MLPEncoder
from pinoise.training.folder import describe_environment

ROUNDS = 5
SETS = ("digits", "wisdm", "hapt561", "reuters46", "newsgroups20", "fashion_mnist")
FEWER = 2000  # training rows of the smaller cases
Predict = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Case(NamedTuple):
    """Rows to predict from, their labels, and rows to predict."""

    name: str
    train: np.ndarray
    y: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


def scikit_learn(train: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    predicted: np.ndarray = KNeighborsClassifier(NEIGHBOURS).fit(train, y).predict(test)
    return predicted


VARIANTS: dict[str, Predict] = {"pinoise": knn_predict, "scikit-learn": scikit_learn}


def cases() -> Iterator[Case]:
    """Yield real data sets from small to large, and an embedding of the largest."""
    for name in SETS:
        data = load(name)
        assert data.test is not None
        assert data.train.y is not None
        assert data.test.y is not None
        standardizer = Standardizer.fit(data.train.x)
        parts = [make_rows(part.x, standardizer) for part in (data.train, data.test)]
        train, test = (embed(nn.Flatten(), rows) for rows in parts)
        if name == "fashion_mnist":
            few = slice(FEWER)
            yield Case(f"{name}, {FEWER} rows", train[few], data.train.y[few], test[few], data.test.y[few])
        yield Case(name, train, data.train.y, test, data.test.y)
        if name == "fashion_mnist":
            torch.manual_seed(0)
            encoder = MLPEncoder(standardizer.shape)
            train, test = (embed(encoder, rows) for rows in parts)
            yield Case(f"{name}, embedding", train, data.train.y, test, data.test.y)


def measure(case: Case) -> dict[str, Any]:
    """Return sizes, accuracies, times and memory of one case."""
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    predicted = {}
    for _ in range(ROUNDS):
        for name, predict in VARIANTS.items():
            began = time.perf_counter()
            predicted[name] = predict(case.train, case.y, case.test)
            seconds[name].append(time.perf_counter() - began)
    ours, theirs = predicted.values()
    return {
        "data": case.name,
        "train_rows": len(case.train),
        "test_rows": len(case.test),
        "features": case.train.shape[1],
        "different_predictions": int((ours != theirs).sum()),
        "accuracy": {name: float(np.mean(found == case.y_test)) for name, found in predicted.items()},
        "seconds": {name: round(statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": round(statistics.median(a / b for a, b in zip(*seconds.values(), strict=True)), 3),
        "peak_memory_mb": peak_memory(case),
    }


def peak_memory(case: Case) -> dict[str, float]:
    """Return the memory in MB that each variant needs beyond the data, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.npz")
        np.savez(path, allow_pickle=False, train=case.train, y=case.y, test=case.test)
        found: dict[str, float] = {}
        for name in VARIANTS:
            asked = [sys.executable, __file__, "--only", name, "--case", str(path)]
            done = subprocess.run(asked, check=True, capture_output=True, text=True)
            found[name] = round(float(done.stdout.split()[-1]))
    return found


def memory_of_one(predict: Predict, path: Path) -> float:
    """Return the peak memory in MB that one prediction adds to this process."""
    with np.load(path) as arrays:
        train, y, test = (arrays[name] for name in ("train", "y", "test"))
    predict(train[:20], y[:20], test[:1])  # memory that libraries take at their first use is not counted
    before = _status("VmRSS")
    predict(train, y, test)
    return _status("VmHWM") - before


def _status(name: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=VARIANTS, help="measure the memory of one variant alone")
    parser.add_argument("--case", type=Path, help="the file of arrays for --only")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "knn.json")
    arguments = parser.parse_args()
    if arguments.only:
        print(memory_of_one(VARIANTS[arguments.only], arguments.case))
        return
    results = []
    for case in cases():
        results.append(measure(case))
        print(results[-1], flush=True)
    write_json(arguments.out, {"rounds": ROUNDS, "environment": describe_environment(), "results": results})


if __name__ == "__main__":
    main()
