"""Whether neighbours among all training rows are worth their cost, against a bank of 2,048. No test row is used.

pip install faiss-cpu
PINOISE_DATA=FOLDER python benchmarks/neighbours_at_size.py accuracy  # fits; some of them take minutes
python benchmarks/neighbours_at_size.py search                        # recall and cost of one search

``accuracy`` fits the default with neighbours in the bank, in one of 8,192 rows, and in all rows, and scores the joined
embedding on other training rows than it was fitted on. Up to 8,192 rows are searched exactly. More are searched with an
index of faiss (IVF), which proposes rows that are then compared as always; it is built again when the metric has moved.
``mixture`` is made of curved surfaces in noise, because no real set here has 10⁵ rows. Seconds are of one core's work.

``search`` finds the neighbours of a batch among up to 10⁶ rows, exhaustively and with faiss's graph (HNSW) and lists
(IVF). Recall is the share of the nearest rows of all that a search finds; the bank finds those that are in it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from machine import commit
from pinoise.data import Dataset
from pinoise.data.dataset import Part
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.plans import with_steps
from pinoise.files import read_json, write_json
from pinoise.modes import flushed_denormals
from pinoise.networks.embedding import Raw
from pinoise.noise import Support
from pinoise.noise import rows as noise_rows
from pinoise.noise import support as _support
from pinoise.noise.rows import Nearest, nearest
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import SUITE, fitted, scores, validation

support: Any = _support  # whose constants and search are replaced here
BANK, LARGER = 2048, 8192
MOVES = -1  # samples move among all rows, and all else is of the bank
SETS: dict[str, int] = {"usps": 12_000, "hapt561": 12_000, "fashion_mnist": 40_000}  # rows, of which a quarter scores
MIXTURES = (10_000, 100_000, 1_000_000)
SCORED = 20_000  # the most rows that classifiers see
PROPOSED = 50  # rows that an index proposes for each query
PROBES = 16  # lists that are searched
MOVED = 0.2  # of log σ on average, after which a table of all rows' neighbours is made again
TARGET = Path(__file__).parent / "results" / "neighbours_at_size.json"

WIDTH, BATCH, K, ROUNDS = 136, 256, 10, 5


def make_index(rows: Tensor, kind: str = "lists") -> Any:
    """Return an index of faiss over rows."""
    import faiss

    faiss.omp_set_num_threads(1)
    n, width = rows.shape
    index: Any
    if kind == "graph":
        index = faiss.IndexHNSWFlat(width, 32)
        index.hnsw.efConstruction, index.hnsw.efSearch = 40, 64
    else:
        lists = int(4 * n**0.5)
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, lists)
        index.cp.niter, index.cp.min_points_per_centroid = 8, 10
        index.train(rows[torch.randperm(n, generator=torch.Generator().manual_seed(0))[: 20 * lists]].numpy())
        index.nprobe = PROBES
    index.add(rows.numpy())
    return index


class Indexed:
    """``nearest`` with an index, where the bank has many rows."""

    def __init__(self) -> None:
        self._bank, self._index = torch.empty(0), None
        self.built = 0

    def __call__(self, queries: Tensor, bank: Tensor, **options: Any) -> Nearest:
        if len(bank) <= LARGER:
            return nearest(queries, bank, **options)
        if self._bank is not bank:
            self._bank, self._index = bank, make_index(bank)
            self.built += 1
        parts = [self._among(queries, bank, start, **options) for start in range(0, len(queries), BATCH)]
        return Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _among(
        self,
        queries: Tensor,
        bank: Tensor,
        start: int,
        *,
        k: int,
        skip: Tensor | None = None,
        skip_equal: bool = False,
        discount: Tensor | None = None,
        squares: Tensor | None = None,
    ) -> Nearest:
        block = queries[start : start + BATCH]
        assert self._index is not None
        _, found = self._index.search(block.numpy(), PROPOSED)
        proposed = torch.from_numpy(found)
        exact = (bank[proposed.clamp_min(0)] - block[:, None]).square().sum(dim=2)
        exact.masked_fill_(proposed < 0, torch.inf)  # lists with too few rows
        if skip is not None:
            exact.masked_fill_(proposed == skip[start : start + BATCH, None], torch.inf)
        if skip_equal:
            exact.masked_fill_(exact <= noise_rows._EQUAL * 2 * block.square().sum(dim=1, keepdim=True), torch.inf)
        plain = exact.topk(k, dim=1, largest=False).values
        finite = plain.isfinite()
        crowding = torch.where(finite, plain, 0).sum(dim=1) / finite.sum(dim=1).clamp_min(1)
        chosen = (exact if discount is None else exact - discount[proposed.clamp_min(0)]).topk(k, dim=1, largest=False)
        return Nearest(proposed.clamp_min(0).gather(1, chosen.indices), chosen.values, crowding)

    def others(self, rows: Tensor, *, k: int, squares: Tensor) -> Nearest:
        """Return what ``nearest_others`` does."""
        options = {"k": k, "skip": torch.arange(len(rows)), "squares": squares}
        return self(rows, rows, discount=self(rows, rows, **options).crowding, **options)


@contextmanager
def searching(indexed: Indexed | None = None) -> Iterator[Indexed]:
    """Search with an index inside the block."""
    indexed = indexed or Indexed()
    with mock.patch.multiple(support, nearest=indexed, nearest_others=indexed.others):
        yield indexed


@contextmanager
def bank_of(rows: int) -> Iterator[Indexed]:
    """Search neighbours among so many rows inside the block."""
    with mock.patch.multiple(support, SUPPORT_ROWS=rows, _BANK_ENTRIES=1 << 50), searching() as indexed:
        yield indexed


@contextmanager
def moves_among(rows: Tensor) -> Iterator[Indexed]:
    """Let training rows move to neighbours among all rows inside the block; all else stays with the bank.

    A table of all neighbours is made with an index, again when the metric has moved by ``MOVED``.
    """
    before, indexed, wide = Support.draw, Indexed(), list[Support]()

    def draw(self: Support, x: Tensor, *, rows: Tensor | None = None, **options: Any) -> Tensor:
        if rows is None:
            return before(self, x, rows=rows, **options)
        if not wide:
            wide.append(Support(every, numbers=torch.arange(len(every)), rows=len(every), k=self.k))
        if float((self.metric / wide[0].metric).log().abs().mean()) > MOVED:
            wide[0].metric.copy_(self.metric)
            wide[0]._forget()
        with searching(indexed):
            return before(wide[0], x, rows=rows, **options)

    every = rows
    Support.draw = draw  # type: ignore[method-assign]
    try:
        yield indexed
    finally:
        Support.draw = before  # type: ignore[method-assign]


def mixture(rows: int, *, classes: int = 20, width: int = 64) -> Dataset:
    """Return classes that are curved surfaces of three dimensions in noise, and 5,000 validation rows."""
    rng = np.random.default_rng(0)
    maps, centres = rng.normal(size=(classes, 2, 3, width)), rng.normal(scale=0.7, size=(classes, width))
    y = rng.integers(classes, size=rows + 5000)
    latent = rng.normal(size=(len(y), 3))
    x = np.empty((len(y), width), np.float32)
    for c in range(classes):
        own = y == c
        x[own] = centres[c] + np.sin(2 * latent[own]) @ maps[c, 0] + latent[own] @ maps[c, 1]
    x += rng.normal(scale=1.5, size=x.shape)
    return Dataset(f"mixture {rows}", Part(x[:rows], y[:rows]), Part(x[rows:], y[rows:]))


def study(data: Dataset, bank: int, seed: int, amplitude: float | None = None) -> dict[str, float]:
    """Return the accuracies on validation rows of a fit, and a core's milliseconds for a step, all included.

    Args:
        data: rows to fit and, as its test part, rows to score.
        bank: the rows of the bank, or ``MOVES``.
        seed: of the fit and the scores.
        amplitude: of the noise; None is the default's.
    """
    assert data.test is not None
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    shared = merge(
        SUITE.settings, {"training": {"seed": seed, "information_draws": 0}, "noise": {"amplitude": amplitude}}
    )
    settings = with_steps(parse_settings(shared), SUITE.steps, rows=len(data.train))
    began = time.process_time()
    with moves_among(rows[torch.arange(len(rows))]) if bank == MOVES else bank_of(bank) as indexed:
        encoder = fitted(settings, standardizer, rows).method.encoder
    seconds = time.process_time() - began
    few = Dataset(data.name, data.train.take(np.arange(min(SCORED, len(data.train)))), data.test)
    embedding, labelled = build_embedding(encoder, "joined", standardizer, rows), make_rows(few.train.x, standardizer)
    found = scores(embedding, few, labelled, held_out, seed=seed)
    raw = scores(Raw(unit_rows=standardizer.unit_rows), few, labelled, held_out, seed=seed)
    steps = settings.training.epochs * (len(rows) // settings.training.batch_size)
    cost = {"milliseconds": round(1000 * seconds / steps, 2), "steps": steps, "indexes": indexed.built}
    return {**found, **{f"raw_{name}": value for name, value in raw.items()}, **cost}


def accuracy(names: list[str], seeds: list[int], banks: list[int], amplitude: float | None) -> Iterator[dict[str, Any]]:
    """Yield a row per set, seed and bank; one of 0 rows is all."""
    for name in names:
        data = mixture(int(name)) if name.isdecimal() else validation(name, rows=SETS[name])
        n = len(data.train)
        for seed in seeds:
            for bank in sorted({min(bank or n, n) for bank in banks}):
                special = {MOVES: "moves among all", n: "all"}
                way = special.get(bank, f"bank of {bank}") + (f", amplitude {amplitude:g}" if amplitude else "")
                yield {"set": data.name, "rows": n, "way": way, "seed": seed, **study(data, bank, seed, amplitude)}


def search_costs() -> Iterator[dict[str, Any]]:
    """Yield recall and cost for every number of rows and way to search."""
    rng = np.random.default_rng(0)
    surface = rng.normal(size=(2, 10, WIDTH)) / np.sqrt(20)
    for n in MIXTURES:
        latent = rng.normal(size=(n, 10))
        x = np.sin(2 * latent) @ surface[0] + latent @ surface[1] + rng.normal(scale=0.1, size=(n, WIDTH))
        rows = torch.from_numpy(x.astype(np.float32))
        queries, squares, own = rows[:BATCH], rows.square().sum(dim=1), torch.arange(BATCH)
        truth = nearest(queries, rows, k=K, skip=own, squares=squares).positions
        sampled = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:BANK]
        ways: dict[str, Callable[[], Callable[[], Tensor]]] = {
            "bank": partial(_in_bank, queries, rows[sampled].clone(), sampled),
            "all": partial(partial, _in_all, queries, rows, squares),
            "lists": partial(_in_index, queries, rows, "lists"),
            "graph": partial(_in_index, queries, rows, "graph"),
        }
        for way, build in ways.items():
            if way == "graph" and n == max(MIXTURES):  # building it takes a quarter of an hour
                continue
            began = time.process_time()
            find = build()
            seconds = time.process_time() - began
            yield {"rows": n, "way": way, "build_s": round(seconds, 1), **_timed(find, truth)}


def _in_bank(queries: Tensor, bank: Tensor, numbers: Tensor) -> Callable[[], Tensor]:
    return lambda: numbers[nearest(queries, bank, k=K, skip_equal=True).positions]


def _in_all(queries: Tensor, rows: Tensor, squares: Tensor) -> Tensor:
    return nearest(queries, rows, k=K, skip=torch.arange(len(queries)), squares=squares).positions


def _in_index(queries: Tensor, rows: Tensor, kind: str) -> Callable[[], Tensor]:
    index = make_index(rows, kind)
    return lambda: torch.from_numpy(index.search(queries.numpy(), K + 1)[1])[:, 1:]  # the first is the row itself


def _timed(find: Callable[[], Tensor], truth: Tensor) -> dict[str, float]:
    found, seconds = find(), []
    recall = fmean(len(set(a) & set(b)) / K for a, b in zip(found.tolist(), truth.tolist(), strict=True))
    for _ in range(ROUNDS):
        began = time.process_time()
        find()
        seconds.append(time.process_time() - began)
    return {"recall": round(recall, 3), "milliseconds": round(1000 * median(seconds), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "search"))
    parser.add_argument("--sets", nargs="*", default=[*SETS, *map(str, MIXTURES)])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--banks", nargs="*", type=int, default=[BANK, LARGER, 0, MOVES], help="rows; 0: all; −1: moves"
    )
    parser.add_argument("--amplitude", type=float, help="of the noise, as noise.amplitude")
    given = parser.parse_args()
    torch.set_num_threads(1)
    measured = commit()  # before the file of results changes
    with flushed_denormals():
        for row in (
            accuracy(given.sets, given.seeds, given.banks, given.amplitude)
            if given.what == "accuracy"
            else search_costs()
        ):
            print(row, flush=True)
            _store(given.what, {**row, "commit": measured})


def _store(what: str, row: dict[str, Any]) -> None:
    """Add a row to the results, in place of an earlier one of the same case."""

    def case(one: dict[str, Any]) -> list[Any]:
        return [one.get(key) for key in ("set", "rows", "way", "seed")]

    stored = read_json(TARGET) if TARGET.exists() else {}
    rows = [other for other in stored.get(what, ()) if case(other) != case(row)]
    write_json(TARGET, {**stored, what: [*rows, row], "environment": describe_environment()})


if __name__ == "__main__":
    main()
