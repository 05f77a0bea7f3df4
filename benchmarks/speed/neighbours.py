"""Our kNN against scikit-learn's and faiss's: seconds, predictions and memory."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from pinoise.evaluation.knn import NEIGHBOURS, knn_neighbours
from speed.resident import forget_peak, status_mb
from speed.timing import in_new_process, in_turns, milliseconds, ratio

ROWS, QUERIES, FEATURES, GROUPS = 50_000, 2_000, 256, 50
TURNS, PROCESSES = 3, 3
Search = Callable[[np.ndarray, np.ndarray], np.ndarray]


def scikit_learn(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    found: np.ndarray = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train).kneighbors(test, return_distance=False)
    return found


def faiss(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    import faiss as library

    library.omp_set_num_threads(1)
    index = library.IndexFlatL2(train.shape[1])
    index.add(train)
    found: np.ndarray = index.search(test, NEIGHBOURS)[1]
    return found


SEARCHES: dict[str, Search] = {"pinoise": knn_neighbours, "scikit-learn": scikit_learn}
if importlib.util.find_spec("faiss") is not None:
    SEARCHES["faiss"] = faiss


def rows(count: int) -> np.ndarray:
    """Return rows in groups, as an embedding has them."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((GROUPS, FEATURES), dtype=np.float32)
    return centres[draw.integers(0, GROUPS, count)] + draw.standard_normal((count, FEATURES), dtype=np.float32)


def measure() -> dict[str, Any]:
    """Return how often our search is as fast, and the memory of each beyond the data."""
    x = rows(ROWS + QUERIES)
    train, test = x[:ROWS], x[ROWS:]
    found = {name: search(train, test) for name, search in SEARCHES.items()}
    differing = {name: int((found[name] != found["pinoise"]).any(axis=1).sum()) for name in SEARCHES}
    times = in_turns({n: lambda s=s: s(train, test) for n, s in SEARCHES.items()}, turns=TURNS)  # type: ignore[misc]
    ratios = {f"speed of kNN / {name}'s": ratio(times, name, "pinoise") for name in SEARCHES if name != "pinoise"}
    memory = {name: least_memory(name, ROWS) for name in SEARCHES}
    ratios["memory of kNN, twice the rows"] = round(least_memory("pinoise", 2 * ROWS) / memory["pinoise"], 3)
    return {"ratios": ratios, "milliseconds": milliseconds(times), "memory_mb": memory, "differing_rows": differing}


def least_memory(name: str, count: int) -> float:
    """Return the least peak memory in MB of several processes: how much freed memory one holds back is chance."""
    return min(float(in_new_process("neighbours", name, str(count))) for _ in range(PROCESSES))


def memory_of(name: str, count: int) -> float:
    """Return the peak memory in MB that a search adds to this process."""
    x = rows(count + QUERIES)
    train, test = x[:count], x[count:]
    SEARCHES[name](train[:100], test[:10])  # memory that libraries take at their first use is not counted
    forget_peak()  # to make the rows took more than they do
    before = status_mb("VmRSS")
    SEARCHES[name](train, test)
    return round(status_mb("VmHWM") - before)


if __name__ == "__main__":
    print(json.dumps(memory_of(sys.argv[1], int(sys.argv[2]))))
