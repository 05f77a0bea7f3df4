"""A whole comparison in one call: methods side by side on your data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pinoise.choices import AUTO, EMBEDDINGS, LARGEST_SEED, MOST_TIMES, EmbeddingName
from pinoise.data.dataset import Dataset
from pinoise.data.layout import are_images
from pinoise.data.moments import HEAVY_TAILS
from pinoise.data.standardizer import Scaling, auto_scaling
from pinoise.errors import UserError, brief, unknown_choice
from pinoise.experiments.cache import CellCache
from pinoise.experiments.fitting import fit_all
from pinoise.experiments.plans import Plans, plan
from pinoise.experiments.ranking import ranking_as_dict
from pinoise.experiments.recipes import (
    DEFAULT_METHODS,
    EPOCHS,
    IMAGE_METHODS,
    MOST_SEEDS,
    RECIPES,
    SEEDS,
    choose_methods,
    installed,
)
from pinoise.experiments.results import Cell, Line, summarise, verdict
from pinoise.experiments.sources import open_compared, scored_part
from pinoise.modes import flushed_denormals
from pinoise.training.callbacks import Quiet, Reporter
from pinoise.training.config import IMAGE_ENCODER, VECTOR_ENCODER, merge, parse_settings
from pinoise.training.folder import describe_environment


@dataclass
class Comparison:
    """What a comparison has found so far, and what it is made of."""

    total: int  # cells when it is finished
    embedding: EmbeddingName
    steps: int | None
    settings: Mapping[str, Any]
    cells: list[Cell] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """Mean and standard deviation over seeds of every data set and method, in percent."""
        return summarise(self.cells)

    @property
    def by_data(self) -> dict[str, list[Line]]:
        """The lines of every data set."""
        return {name: list(lines) for name, lines in groupby(self.lines, key=lambda line: line.data)}

    @property
    def verdicts(self) -> dict[str, str]:
        """What the comparison says about every data set, in one sentence each."""
        return {name: verdict(lines) for name, lines in self.by_data.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "rows": [cell.as_dict() for cell in self.cells],
            **ranking_as_dict(self.cells),
            "verdicts": self.verdicts,
            "embedding": self.embedding,
            "steps": self.steps,
            "settings": self.settings,
            "environment": describe_environment(),
        }


def compare(
    *sources: str | Path | Dataset,
    methods: Sequence[str] | None = None,
    seeds: int | Sequence[int] = SEEDS,
    label: str | None = None,
    score_on: str | Path | Dataset | None = None,
    settings: Mapping[str, Any] | None = None,
    embedding: str | None = None,
    steps: int | None = None,
    cache: Path | None = None,
    progress: bool = False,
    reporter: Callable[[str], Reporter] = lambda _: Quiet(),
    note: Callable[[str], None] = lambda _: None,
    keep_partial: bool = False,
) -> Comparison:
    """Compare methods under one encoder, the same steps and the same evaluation; labels only score.

    Args:
        sources: names of the catalogue, files, or labelled data sets with a test part.
        methods: names of recipes; raw features and the untrained encoder are always there.
        seeds: how many, or which.
        label: the label's column in files.
        score_on: another labelled set of the same shape to score on; the sources then need no labels.
        settings: what all methods share, as nested configuration.
        embedding: ``"joined"`` or ``"learned"``; if None, joined, or learned for images.
        steps: about how many steps every fit takes, instead of epochs.
        cache: a folder that keeps finished fits, so that a comparison can be stopped and go on.
        progress: whether downloads show a bar.
        reporter: makes the reporter of a fit from its title.
        note: called with a sentence about what was done to the data.
        keep_partial: whether Ctrl-C returns what is finished instead of raising.

    >>> small = {"encoder": {"hidden": 8}, "training": {"epochs": 1}}
    >>> found = compare("wine", methods=["fixed"], seeds=1, settings=small)
    >>> [line.method for line in found.lines], len(found.cells) == found.total
    (['raw', 'untrained', 'fixed'], True)
    """
    if not sources:
        raise UserError("there is nothing to compare on: give names, files or data sets.")
    shared, numbers = _shared(settings or {}, steps), _listed_seeds(seeds)
    plan(choose_methods(methods or DEFAULT_METHODS), numbers[:1], settings=shared, encoder=AUTO)  # mistakes come first
    options = parse_settings(shared).data
    datasets = open_compared(sources, options, label=label, score_on=score_on, progress=progress)
    _tell(datasets, options.scaling, note)
    images = _mean_images(datasets, shared, note)
    names = choose_methods(methods or (IMAGE_METHODS if images else DEFAULT_METHODS))
    encoder = IMAGE_ENCODER if images else VECTOR_ENCODER
    plans = plan(_installed(names, note), numbers, settings=shared, encoder=encoder, note=note)
    _check_classes(datasets, plans)
    shown = _embedding(embedding, plans)
    found = Comparison(len(datasets) * len(plans), shown, steps, merge({"encoder": encoder}, shared))
    kept = None if cache is None else CellCache(cache)
    fits = fit_all(datasets, plans, embeddings=[shown], steps=steps, cache=kept, reporter=reporter)
    with flushed_denormals(), suppress(KeyboardInterrupt) if keep_partial else nullcontext():
        found.cells.extend(fits)  # as they are finished
    return found


def _shared(settings: Mapping[str, Any], steps: int | None) -> dict[str, Any]:
    """Return what all methods share: the settings, and the usual number of epochs if there is none."""
    if steps is not None and not 1 <= steps <= MOST_TIMES:
        raise UserError(f"steps is {brief(steps)}: give a whole number from 1 to {MOST_TIMES}.")
    if steps is not None and (epochs := settings.get("training", {}).get("epochs")) is not None:
        raise UserError(f"epochs is {brief(epochs)} and steps is {steps}: give one of them.")
    return merge({} if steps is not None else {"training": {"epochs": EPOCHS}}, settings)


def _installed(names: list[str], note: Callable[[str], None]) -> list[str]:
    """Return the methods whose packages are here."""
    for name in names:
        if not installed(name):
            note(f"{RECIPES[name].title} is left out: the module {RECIPES[name].needs} is not installed")
    return list(filter(installed, names))


def _mean_images(datasets: Sequence[Dataset], settings: Mapping[str, Any], note: Callable[[str], None]) -> bool:
    """Whether all methods get an encoder for images: no encoder is named, and the samples are images."""
    if parse_settings(settings).encoder.part is not None:
        return False
    kinds = {data.name: are_images(data.train.x) for data in datasets}
    if len(set(kinds.values())) > 1:
        images, vectors = (next(name for name in kinds if kinds[name] == kind) for kind in (True, False))
        raise UserError(
            f"{images} has images and {vectors} has vectors, and a comparison has one encoder: compare them one by "
            f"one, or choose encoder {VECTOR_ENCODER!r}, which takes pixels as vectors."
        )
    for name in (name for name in kinds if kinds[name]):
        note(f"{name}: samples are images, so the encoder is {IMAGE_ENCODER}; {VECTOR_ENCODER} takes pixels as vectors")
    return any(kinds.values())


def _listed_seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    """Return the seeds, each a whole number that every random number generator takes."""
    if isinstance(seeds, bool) or (isinstance(seeds, int) and not 1 <= seeds <= MOST_SEEDS):
        raise UserError(f"seeds is {brief(seeds)}: give a number of seeds from 1 to {MOST_SEEDS}, or a list of seeds.")
    if isinstance(seeds, int):
        return range(seeds)
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= LARGEST_SEED:
            raise UserError(f"a seed is {brief(seed)}: it must be a whole number from 0 to {LARGEST_SEED}.")
    return seeds


def _embedding(asked: str | None, plans: Plans) -> EmbeddingName:
    if asked is not None and asked not in EMBEDDINGS:
        raise unknown_choice("embedding", asked, EMBEDDINGS)
    usual: set[str] = {planned.embedding for planned in plans.values()}  # of images, if any method is for them
    return EMBEDDINGS[EMBEDDINGS.index(asked or ("learned" if "learned" in usual else "joined"))]


def _check_classes(datasets: list[Dataset], plans: Plans) -> None:
    """Refuse to classify a measurement, before any fit."""
    classifiers = [RECIPES[method].title for method, _ in plans if RECIPES[method].classifier is not None]
    for data in datasets:
        if classifiers and scored_part(data).measures:
            raise UserError(
                f"the labels of {data.name} are a measurement, and {classifiers[0]} tells classes apart: leave it out "
                "of the methods."
            )


def _tell(datasets: Sequence[Dataset], scaling: Scaling, note: Callable[[str], None]) -> None:
    """Say what was done to the data, and that tails are compressed where nobody has asked for it."""
    for data in datasets:
        x = data.train.x
        heavy = scaling == "auto" and x.dtype != np.uint8 and auto_scaling(x) == "compressed"
        for sentence in [*data.notes, *([f"{HEAVY_TAILS}; --set data.scaling=features leaves them"] if heavy else [])]:
            note(f"{data.name}: {sentence}")
