"""Every method on every data set under the same encoder, steps and evaluation; labels are used only to score."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from pinoise.data.dataset import Dataset, row_slices
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Scaling, Standardizer
from pinoise.errors import UserError
from pinoise.evaluation import Scores, embed, evaluate
from pinoise.experiments.cache import CellCache, by_content, cell_key
from pinoise.experiments.recipes import RECIPES
from pinoise.experiments.sources import check_scorable
from pinoise.networks import Embedding, EmbeddingName, settle_statistics
from pinoise.training.build import build_embedding, build_encoder
from pinoise.training.device import check_device
from pinoise.training.finished import FinishedRun
from pinoise.training.fit import fit
from pinoise.training.loop import Reporter
from pinoise.training.parse import merge, parse_settings
from pinoise.training.progress import Quiet
from pinoise.training.settings import Settings, scaling_of
from pinoise.training.state import BUILDING, seed_of

SCORES = ("knn", "sr", "lr", "few")

CELL_FORMAT = 1
"""Raised whenever a change of the code makes cached cells wrong."""


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed, under one embedding; accuracies from 0 to 1."""

    data: str
    method: str
    seed: int
    embedding: str
    knn: float
    sr: float
    lr: float
    few: float
    seconds: float  # to fit the encoder, without evaluation
    flags: tuple[str, ...] = ()  # what went wrong in training, by name
    few_draws: tuple[float, ...] = ()  # of every draw of labels, whose mean is ``few``

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "flags": list(self.flags), "few_draws": list(self.few_draws)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cell:
        """Read what ``as_dict`` wrote."""
        return cls(**{**values, "flags": tuple(values["flags"]), "few_draws": tuple(values["few_draws"])})


_STATISTICS_ROWS, _STATISTICS_BATCH = 2048, 256  # for the batch normalisation of encoders that are not trained

Plans = Mapping[tuple[str, int], Settings]
"""The settings of every method and seed."""


def plan(methods: Sequence[str], seeds: Sequence[int], *, settings: Mapping[str, Any]) -> Plans:
    """Return the settings of every method and seed, so that a mistake in them costs no time.

    Args:
        methods: names of recipes.
        seeds: one fit for each.
        settings: what all methods share, as nested configuration; what a recipe is made of is not theirs to change.
    """
    given = set(_paths(settings))
    if taken := given & {"data.source", "data.label", "embedding", "training.seed"}:
        raise UserError(f"a comparison sets {min(taken)} itself: use --data, --label, --embedding and --seeds.")
    for method in methods:
        made_of = set(_paths(RECIPES[method].settings or {}))
        for path in sorted(given):
            if path in made_of or path.removesuffix(".name") in made_of:
                raise UserError(f"{path} is what makes method {method!r}: leave it out, or leave out the method.")
    plans = {
        (method, seed): parse_settings(
            merge(
                merge(RECIPES[method].settings or {}, settings),
                {"training": {"seed": seed, "information_draws": 0}},  # nobody reads it here, and it takes time
            )
        )
        for method in methods
        for seed in seeds
    }
    for planned in plans.values():
        check_device(planned.training.device)
    return plans


def _paths(values: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{key}.")
        else:
            yield before + key


def compare(
    datasets: Iterable[Dataset],
    plans: Plans,
    *,
    embeddings: Sequence[EmbeddingName] = ("joined",),
    steps: int | None = None,
    cache: CellCache | None = None,
    reporter: Callable[[str], Reporter] = lambda _: Quiet(),
) -> Iterator[Cell]:
    """Yield the cells of the table as they are finished, data set by data set.

    Args:
        datasets: labelled sets with a test part.
        plans: the settings of every method and seed.
        embeddings: what is scored of every fit.
        steps: about how many steps every fit takes, whatever the number of rows; the plans' epochs if None.
        cache: where finished cells are kept, and looked for first; those of a user's own module are not.
        reporter: makes the reporter of a fit from its title.
    """
    for data in map(check_scorable, datasets):
        prepared: dict[Scaling, _Prepared] = {}
        identity = {"data": data.name, "checksum": _checksum(data), "pinoise": version("pinoise")}
        for (method, seed), planned in plans.items():
            settings = planned if steps is None else _with_steps(planned, steps, rows=len(data.train))
            about = {**identity, "method": method, "settings": _what_counts(method, settings), "format": CELL_FORMAT}
            parts = {name: {**about, "seed": seed, "embedding": name} for name in embeddings}
            kept = None if _runs_foreign_code(method, settings) else cache
            cells = {name: _cached(kept, parts[name]) for name in embeddings}
            missing = [name for name in embeddings if cells[name] is None]
            if missing:
                scaling = scaling_of(settings)
                if scaling not in prepared:
                    prepared[scaling] = _Prepared.of(data, scaling)
                title = f"{data.name} · {RECIPES[method].title} · seed {seed}"
                for name, cell in zip(
                    missing,
                    _fit_cells(data, prepared[scaling], method, settings, missing, reporter(title)),
                    strict=True,
                ):
                    cells[name] = cell
                    if kept is not None:
                        kept.put(cell_key(parts[name]), cell.as_dict(), parts=parts[name])
            yield from (cell for cell in cells.values() if cell is not None)


class _Prepared(NamedTuple):
    """A data set as encoders see it."""

    standardizer: Standardizer
    train: Rows
    test: Rows

    @classmethod
    def of(cls, data: Dataset, scaling: Scaling) -> _Prepared:
        assert data.test is not None  # it was checked
        standardizer = Standardizer.fit(data.train.x, scaling=scaling)
        return cls(standardizer, *(make_rows(part.x, standardizer) for part in (data.train, data.test)))


def _fit_cells(
    data: Dataset,
    prepared: _Prepared,
    method: str,
    settings: Settings,
    embeddings: Sequence[EmbeddingName],
    reporter: Reporter,
) -> Iterator[Cell]:
    """Fit once and score every embedding asked for."""
    seed = settings.training.seed
    began = time.perf_counter()
    encoder, flags = fit_encoder(method, settings, prepared.standardizer, prepared.train, reporter)
    seconds = round(time.perf_counter() - began, 3)
    for name in embeddings:
        encode = nn.Flatten() if encoder is None else Embedding(encoder, name=name)
        scores = score(encode, data, prepared.train, prepared.test, seed=seed)
        yield Cell(
            data=data.name,
            method=method,
            seed=seed,
            embedding=name,
            knn=scores.knn,
            sr=scores.sr,
            lr=scores.lr,
            few=scores.few,
            seconds=seconds,
            flags=flags,
            few_draws=scores.few_draws,
        )


def _with_steps(settings: Settings, steps: int, *, rows: int) -> Settings:
    """Return settings with as many whole epochs as come to at least so many steps."""
    per_epoch = max(1, rows // settings.training.batch_size)
    training = settings.training.model_copy(update={"epochs": math.ceil(steps / per_epoch)})
    return settings.model_copy(update={"training": training})


def _what_counts(method: str, settings: Settings) -> dict[str, Any]:
    """Return the settings that a cell depends on: files by their content, and not where decoded images are kept."""
    values = settings.model_dump(exclude={"data": {"source", "label"}, "embedding": True})
    values["data"]["cache"] = None
    counting: dict[str, Any] = by_content({"data": values["data"]} if method == "raw" else values)
    return counting


def _runs_foreign_code(method: str, settings: Settings) -> bool:
    """Whether a cell depends on a module of the user's, of which no checksum tells that it is still the same."""
    return method != "raw" and "module" in (settings.encoder.name, settings.noise.generator)


def _checksum(data: Dataset) -> str:
    """Return a checksum of every sample and label."""
    digest = hashlib.sha256()
    for part in (data.train, data.test):
        if part is None:
            continue
        digest.update(repr((part.x.shape, str(part.x.dtype))).encode())
        if isinstance(part.x, sp.csr_array):
            for array in (part.x.data, part.x.indices, part.x.indptr):
                digest.update(np.ascontiguousarray(array).tobytes())
        else:
            for chunk in row_slices(part.x):  # a mapped file is read piece by piece
                digest.update(np.ascontiguousarray(part.x[chunk]).tobytes())
        if part.y is not None:
            digest.update(np.ascontiguousarray(part.y).tobytes())
    return digest.hexdigest()


def _cached(cache: CellCache | None, parts: Mapping[str, Any]) -> Cell | None:
    values = None if cache is None else cache.get(cell_key(parts))
    return None if values is None else Cell.from_dict(values)


def fit_encoder(
    method: str, settings: Settings, standardizer: Standardizer, rows: Rows, reporter: Reporter
) -> tuple[nn.Module | None, tuple[str, ...]]:
    """Return the trained encoder of a method, none for raw features, and the names of what went wrong in training."""
    if method == "raw":
        return None, ()
    if method == "untrained":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(settings.training.seed, BUILDING))
            encoder = build_encoder(settings, standardizer.shape, pretrained=True)
            chosen = torch.arange(min(len(rows), _STATISTICS_ROWS)) * len(rows) // min(len(rows), _STATISTICS_ROWS)
            settle_statistics(encoder, (rows[part] for part in chosen.split(_STATISTICS_BATCH)))
            return encoder.eval(), ()
    fitted = fit(settings, standardizer, rows, reporter=reporter)
    return fitted.model.method.encoder, tuple(flag.name for flag in fitted.flags)


def score(encode: nn.Module, data: Dataset, train_rows: Rows, test_rows: Rows, *, seed: int) -> Scores:
    """Score an encoder on a labelled data set."""
    assert data.test is not None  # the caller split it
    return evaluate(embed(encode, train_rows), data.train.y, embed(encode, test_rows), data.test.y, seed=seed)


def score_run(run: FinishedRun, data: Dataset, *, seed: int) -> dict[str, Scores]:
    """Score a finished run's embedding beside raw features and the embedding of its encoder before training."""
    check_scorable(data)
    assert data.test is not None  # it was just checked
    train_rows, test_rows = (run.rows(part.x, where=data.name) for part in (data.train, data.test))
    untrained, _ = fit_encoder("untrained", run.settings, run.standardizer, train_rows, Quiet())
    assert untrained is not None  # only raw features have none
    embeddings = {
        "raw": nn.Flatten(),
        "untrained": build_embedding(untrained, run.settings),
        "learned": run.embedding,
    }
    return {name: score(encode, data, train_rows, test_rows, seed=seed) for name, encode in embeddings.items()}


@dataclass(frozen=True)
class Line:
    """A method's scores on one data set over all seeds, in percent."""

    data: str
    method: str
    means: dict[str, float]
    stds: dict[str, float]
    seconds: float
    flags: tuple[str, ...]


def summarise(cells: Sequence[Cell]) -> list[Line]:
    """Return mean and standard deviation over seeds for every data set and method, in the order they came.

    >>> cell = Cell("toy", "raw", 0, "joined", 0.5, 0.5, 0.5, 0.5, 1.0)
    >>> summarise([cell])[0].means["knn"]
    50.0
    """
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.data, cell.method), []).append(cell)
    return [
        Line(
            data=data,
            method=method,
            means={name: 100 * float(np.mean([getattr(cell, name) for cell in group])) for name in SCORES},
            stds={name: 100 * float(np.std([getattr(cell, name) for cell in group])) for name in SCORES},
            seconds=float(np.median([cell.seconds for cell in group])),
            flags=tuple(dict.fromkeys(flag for cell in group for flag in cell.flags)),
        )
        for (data, method), group in groups.items()
    ]
