"""Every method on every data set under the same encoder, steps and evaluation; labels are used only to score."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from pinoise.data.dataset import Dataset
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.evaluation import Scores, embed, evaluate
from pinoise.experiments.recipes import RECIPES
from pinoise.experiments.sources import check_scorable
from pinoise.training.build import build_encoder
from pinoise.training.device import check_device
from pinoise.training.finished import FinishedRun
from pinoise.training.fit import fit
from pinoise.training.loop import Reporter
from pinoise.training.parse import merge, parse_settings
from pinoise.training.progress import Quiet
from pinoise.training.settings import Settings
from pinoise.training.state import BUILDING, seed_of


@dataclass(frozen=True)
class Cell:
    """One method on one data set with one seed; accuracies from 0 to 1."""

    data: str
    method: str
    seed: int
    knn: float
    sr: float
    lr: float
    few: float
    seconds: float  # to fit the encoder, without evaluation
    flags: tuple[str, ...] = ()  # what went wrong with the noise, by name

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "flags": list(self.flags)}


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
    if taken := given & {"data.source", "data.label", "training.seed"}:
        raise UserError(f"a comparison sets {min(taken)} itself: use --data, --label and --seeds.")
    for method in methods:
        made_of = set(_paths(RECIPES[method].settings or {}))
        for path in sorted(given):
            if path in made_of or path.removesuffix(".name") in made_of:
                raise UserError(f"{path} is what makes method {method!r}: leave it out, or leave out the method.")
    plans = {
        (method, seed): parse_settings(
            merge(merge(RECIPES[method].settings or {}, settings), {"training": {"seed": seed}})
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
    datasets: Sequence[Dataset], plans: Plans, *, reporter: Callable[[str], Reporter] = lambda _: Quiet()
) -> Iterator[Cell]:
    """Yield the cells of the table as they are finished, data set by data set.

    Args:
        datasets: labelled sets with a test part.
        plans: the settings of every method and seed.
        reporter: makes the reporter of a fit from its title.
    """
    for data in map(check_scorable, datasets):
        assert data.test is not None  # it was just checked
        standardizer = Standardizer.fit(data.train.x)
        train_rows, test_rows = (make_rows(part.x, standardizer) for part in (data.train, data.test))
        for (method, seed), settings in plans.items():
            title = f"{data.name} · {RECIPES[method].title} · seed {seed}"
            began = time.perf_counter()
            encode, flags = fit_encoder(method, settings, standardizer, train_rows, reporter(title))
            seconds = time.perf_counter() - began
            scores = score(encode, data, train_rows, test_rows, seed=seed)
            yield Cell(
                data=data.name,
                method=method,
                seed=seed,
                knn=scores.knn,
                sr=scores.sr,
                lr=scores.lr,
                few=scores.few,
                seconds=round(seconds, 3),
                flags=flags,
            )


def fit_encoder(
    method: str, settings: Settings, standardizer: Standardizer, rows: Rows, reporter: Reporter
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the trained encoder of a method, and the names of what went wrong with its noise."""
    if method == "raw":
        return nn.Flatten(), ()
    if method == "untrained":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(settings.training.seed, BUILDING))
            return build_encoder(settings, standardizer.shape).eval(), ()
    fitted = fit(settings, standardizer, rows, reporter=reporter)
    return fitted.model.method.encoder, tuple(flag.name for flag in fitted.flags)


def score(encode: nn.Module, data: Dataset, train_rows: Rows, test_rows: Rows, *, seed: int) -> Scores:
    """Score an encoder on a labelled data set."""
    assert data.test is not None  # the caller split it
    return evaluate(embed(encode, train_rows), data.train.y, embed(encode, test_rows), data.test.y, seed=seed)


def score_run(run: FinishedRun, data: Dataset, *, seed: int) -> dict[str, Scores]:
    """Score a finished run's embedding beside raw features and the encoder that it started from."""
    check_scorable(data)
    assert data.test is not None  # it was just checked
    train_rows, test_rows = (run.rows(part.x, where=data.name) for part in (data.train, data.test))
    encoders = {
        name: fit_encoder(name, run.settings, run.standardizer, train_rows, Quiet())[0] for name in ("raw", "untrained")
    }
    encoders["learned"] = run.encoder
    return {name: score(encode, data, train_rows, test_rows, seed=seed) for name, encode in encoders.items()}


@dataclass(frozen=True)
class Line:
    """A method's scores on one data set over all seeds, in percent."""

    data: str
    method: str
    means: dict[str, float]
    stds: dict[str, float]
    seconds: float
    flags: tuple[str, ...]


SCORES = ("knn", "sr", "lr", "few")


def summarise(cells: Sequence[Cell]) -> list[Line]:
    """Return mean and standard deviation over seeds for every data set and method, in the order they came.

    >>> cell = Cell("toy", "raw", 0, 0.5, 0.5, 0.5, 0.5, 1.0)
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
