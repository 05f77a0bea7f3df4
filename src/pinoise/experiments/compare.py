"""A whole comparison in one call: methods side by side on your data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from pinoise.choices import AUTO, EMBEDDINGS, LARGEST_SEED, MOST_TIMES, SCORES, EmbeddingName
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
    Suite,
    choose_methods,
    find_suite,
    installed,
)
from pinoise.experiments.results import Cell, Line, summarise, verdict
from pinoise.experiments.sources import open_compared, present_sources, sample_rows, scored_part, shrink_images
from pinoise.training.callbacks import Quiet, Reporter
from pinoise.training.config import IMAGE_ENCODER, VECTOR_ENCODER, merge, parse_settings
from pinoise.training.device import describe_environment, flushed_denormals


@dataclass
class Comparison:
    """What a comparison has found so far, and what it is made of."""

    total: int  # cells when it is finished
    embedding: EmbeddingName
    suite: str | None
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
    def held_out(self) -> list[Cell]:
        """The cells of the sets that no choice was made on; none where a comparison is not of a suite that says so."""
        suite = None if self.suite is None else find_suite(self.suite)
        sets = suite.held_out if suite is not None and suite.chosen_on else ()
        return [cell for cell in self.cells if cell.data in sets]

    @property
    def verdicts(self) -> dict[str, str]:
        """What the comparison says about every data set, in one sentence each."""
        return {name: verdict(lines) for name, lines in self.by_data.items()}

    def collect(self, cells: Iterable[Cell], *, keep_partial: bool) -> None:
        """Add the cells that are shown as they are finished. With ``keep_partial``, Ctrl-C ends with those so far."""
        try:
            with flushed_denormals():
                for cell in cells:
                    if cell.embedding == self.embedding:
                        self.cells.append(cell)
        except KeyboardInterrupt:
            if not keep_partial:
                raise

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "rows": [cell.as_dict() for cell in self.cells],
            **ranking_as_dict(self.cells),
            "held_out": ranking_as_dict(self.held_out) if self.held_out else None,
            "verdicts": self.verdicts,
            "embedding": self.embedding,
            "suite": self.suite,
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
    suite: str | None = None,
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
        suite: a collection of data sets instead of sources, with its own methods and steps.
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
    chosen = _suite(suite, sources, label, score_on)
    _check_steps(steps, settings or {})
    present, shared, steps = _share(sources, chosen, settings or {}, steps, note)
    numbers = _listed_seeds(seeds)
    plan(_names(methods, chosen), numbers[:1], settings=shared, encoder=AUTO)  # a mistake costs no time to open data
    datasets = _opened(present, shared, label=label, score_on=score_on, suite=chosen, progress=progress, note=note)
    images = isinstance(datasets, list) and _mean_images(datasets, shared, note)
    names, encoder = _names(methods, chosen, images=images), IMAGE_ENCODER if images else VECTOR_ENCODER
    plans = plan(_installed(names, note), numbers, settings=shared, encoder=encoder, note=note)
    if isinstance(datasets, list):
        _check_classes(datasets, plans)
    shown = _embedding(embedding, chosen, plans)
    # A suite reports both embeddings, one at a time, so each fit is scored under both.
    wanted = tuple(name for name in EMBEDDINGS if name == shown or name in (chosen.embeddings if chosen else ()))
    scores, kept = chosen.scores if chosen else SCORES, None if cache is None else CellCache(cache)
    total = (len(datasets) if isinstance(datasets, list) else len(present)) * len(plans)
    found = Comparison(total, shown, suite, steps, merge({"encoder": encoder}, shared))
    fits = fit_all(datasets, plans, embeddings=wanted, scores=scores, steps=steps, cache=kept, reporter=reporter)
    found.collect(fits, keep_partial=keep_partial)
    return found


def _suite(name: str | None, sources: Sequence[object], label: str | None, score_on: object) -> Suite | None:
    """Return the suite that is asked for, if it is asked for alone."""
    if bool(sources) == (name is not None):
        raise UserError("give either data (names, files or data sets) or a suite.")
    for what, given in (("label", label), ("set to score on", score_on)):
        if name is not None and given is not None:
            raise UserError(f"the {what} is {brief(given)}, and a suite has its own: leave it out.")
    return None if name is None else find_suite(name)


def _check_steps(steps: int | None, settings: Mapping[str, Any]) -> None:
    if steps is not None and not 1 <= steps <= MOST_TIMES:
        raise UserError(f"steps is {brief(steps)}: give a whole number from 1 to {MOST_TIMES}.")
    if steps is not None and (epochs := settings.get("training", {}).get("epochs")) is not None:
        raise UserError(f"epochs is {brief(epochs)} and steps is {steps}: give one of them.")


def _names(asked: Sequence[str] | None, suite: Suite | None, *, images: bool = False) -> list[str]:
    """Return the methods to compare."""
    usual = IMAGE_METHODS if images else DEFAULT_METHODS
    return choose_methods(list(asked or (usual if suite is None else suite.methods)))


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


def _share(
    sources: Sequence[str | Path | Dataset],
    suite: Suite | None,
    settings: Mapping[str, Any],
    steps: int | None,
    note: Callable[[str], None],
) -> tuple[Sequence[str | Path | Dataset], dict[str, Any], int | None]:
    """Return the sources, settings and steps that all methods share."""
    shared = merge({} if suite is None else suite.settings, settings)
    if suite is not None:
        sources, absent = present_sources(suite)
        if absent:
            note(f"not here, so left out: {', '.join(absent)}; set PINOISE_DATA to the folder that has them")
    if steps is None and "epochs" not in shared.get("training", {}):
        if suite is not None:
            return sources, shared, suite.steps
        shared = merge(shared, {"training": {"epochs": EPOCHS}})
    return sources, shared, steps


def _embedding(asked: str | None, suite: Suite | None, plans: Plans) -> EmbeddingName:
    usual: set[str] = {planned.embedding for planned in plans.values()}  # of images, if any method is for them
    if asked is not None and asked not in EMBEDDINGS:
        raise unknown_choice("embedding", asked, EMBEDDINGS)
    name = asked or (suite.embeddings[0] if suite else "learned" if "learned" in usual else "joined")
    return EMBEDDINGS[EMBEDDINGS.index(name)]


def _opened(
    sources: Sequence[str | Path | Dataset],
    settings: Mapping[str, Any],
    *,
    label: str | None,
    score_on: str | Path | Dataset | None,
    suite: Suite | None,
    progress: bool,
    note: Callable[[str], None],
) -> Iterable[Dataset]:
    """Open the data sets and say their notes: all at once, so that a mistake costs no fit, or a suite's in turn."""
    options = parse_settings(settings).data

    def opened(*some: str | Path | Dataset) -> Iterator[Dataset]:
        for data in open_compared(some, options, label=label, score_on=score_on, progress=progress):
            for sentence in [*data.notes, *_notes_on_units(data, options.scaling)]:
                note(f"{data.name}: {sentence}")
            yield data

    if suite is None:
        return list(opened(*sources))
    return (
        _smaller(data, suite, note)
        for source in sources
        for data in open_compared([source], options, label=None, progress=progress)
    )


def _check_classes(datasets: list[Dataset], plans: Plans) -> None:
    """Refuse to classify a measurement, before any fit. The sets of a suite all have classes."""
    classifiers = [RECIPES[method].title for method, _ in plans if RECIPES[method].classifier is not None]
    for data in datasets:
        if classifiers and scored_part(data).measures:
            raise UserError(
                f"the labels of {data.name} are a measurement, and {classifiers[0]} tells classes apart: leave it out "
                "of the methods."
            )


def _notes_on_units(data: Dataset, scaling: Scaling) -> list[str]:
    """Return a note if tails are compressed and nobody has asked for it. Those of bytes never are."""
    if scaling != "auto" or data.train.x.dtype == np.uint8 or auto_scaling(data.train.x) != "compressed":
        return []
    return [f"{HEAVY_TAILS}; --set data.scaling=features leaves them"]


def _smaller(data: Dataset, suite: Suite, note: Callable[[str], None]) -> Dataset:
    """Reduce a set to the size of its suite."""
    small = shrink_images(sample_rows(data, train=suite.rows, test=suite.rows), most=suite.pixels)
    for sentence in small.notes:
        note(f"{small.name}: {sentence}")
    return small
