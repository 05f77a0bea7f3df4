"""One method fitted and its embeddings scored; labels are used only to score."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from pinoise.choices import SCORES, EmbeddingName
from pinoise.data.dataset import Dataset, Part, Samples, Spans
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import SCALING, Scaling, Standardizer
from pinoise.evaluation import Scores, embed, evaluate, few_label_accuracies
from pinoise.evaluation.knn import AGREEING, neighbour_agreement
from pinoise.evaluation.rivals import CLASSIFIERS, REDUCTIONS
from pinoise.evaluation.scores import SEEDED
from pinoise.experiments.recipes import RECIPES, sees_features
from pinoise.experiments.results import Cell
from pinoise.experiments.sources import check_scorable, scored_part, shown_part
from pinoise.model import Model
from pinoise.modes import BUILDING, Randomness, own_modes, seed_of
from pinoise.networks import Embedding, Raw
from pinoise.training.build import build_embedding, build_encoder
from pinoise.training.callbacks import Quiet, Reporter
from pinoise.training.config import Settings
from pinoise.training.run import fit

_AGREEING_ROWS = 2000  # among which neighbours are compared
_STATISTICS_ROWS, _STATISTICS_BATCH = 2048, 256  # for the batch normalisation of encoders that are not trained


class LabelledRows(NamedTuple):
    """The rows of both parts as classifiers see them, with their labels."""

    train: np.ndarray
    y_train: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


class PreparedSet:
    """A data set as encoders see it, and what is known about its features whatever the seed.

    ``train`` are the rows to learn from; ``labelled`` and ``test`` are those that score, of the same set or of another.
    """

    def __init__(self, data: Dataset, scaling: Scaling) -> None:
        """Learn the units of the training part and take all rows in them."""
        self.data, self.scored = data, scored_part(data)
        assert self.scored.test is not None  # it was checked
        self.standardizer = Standardizer.fit(data.train.x, scaling=scaling, spans=data.spans)
        self.train = self._rows(data.train)
        self.labelled = self.train if self.scored is data else self._rows(self.scored.train)
        self.test = self._rows(self.scored.test)
        self._steady: dict[str, tuple[LabelledRows, Scores]] = {}

    def _rows(self, part: Part) -> Rows:
        return make_rows(part.x, self.standardizer, origin=part.origin)

    @cached_property
    def features(self) -> LabelledRows:
        """The features themselves with their labels."""
        return embedded(Raw(unit_rows=self.standardizer.unit_rows), self.scored, self.labelled, self.test)

    def reduced(self, reduction: str | None, scores: Collection[str]) -> tuple[LabelledRows, Scores]:
        """Return the features, reduced or not, and those of their scores that no seed changes."""
        name = reduction or "raw"
        if name not in self._steady:
            parts = self.features
            if reduction is not None:
                train, test = REDUCTIONS[reduction](parts.train, parts.test)
                parts = parts._replace(train=train, test=test)
            self._steady[name] = parts, evaluate(*parts, scores=set(scores) - set(SEEDED))
        return self._steady[name]


def fit_cells(
    prepared: PreparedSet,
    method: str,
    settings: Settings,
    embeddings: Sequence[EmbeddingName],
    reporter: Reporter,
    *,
    scores: Collection[str] = SCORES,
) -> Iterator[Cell]:
    """Fit once and score every embedding asked for."""
    seed = settings.training.seed

    def cell(embedding: EmbeddingName, found: Scores, **about: Any) -> Cell:
        values = {name: getattr(found, name) for name in SCORES}
        measured = prepared.scored.measures
        about |= {"few_draws": found.few_draws, "measured": measured, **values}
        return Cell(prepared.data.name, method, seed, embedding, **about)

    began = time.perf_counter()
    if sees_features(method):
        found = score_features(prepared, method, scores, seed=seed)
        fits = len(found.few_draws) if RECIPES[method].classifier else 0  # a classifier is fitted for every draw
        seconds = round((time.perf_counter() - began) / fits, 3) if fits else 0.0
        yield from (cell(name, found, seconds=seconds) for name in embeddings)
        return
    encoder, flags = fit_encoder(method, settings, prepared.standardizer, prepared.train, reporter)
    seconds = round(time.perf_counter() - began, 3)
    for name in embeddings:
        encode = build_embedding(encoder, name, prepared.standardizer, prepared.train)
        parts = embedded(encode, prepared.scored, prepared.labelled, prepared.test)
        yield cell(name, evaluate(*parts, seed=seed, scores=scores), seconds=seconds, flags=flags)


def score_features(prepared: PreparedSet, method: str, scores: Collection[str], *, seed: int) -> Scores:
    """Score a method that sees the features themselves; a classifier has the few-label score alone."""
    recipe = RECIPES[method]
    if recipe.classifier is not None:
        classifier = CLASSIFIERS[recipe.classifier]
        parts = prepared.features
        return Scores(few_draws=few_label_accuracies(*parts, classifier=classifier, seed=seed))
    parts, steady = prepared.reduced(recipe.reduction, scores)
    seeded = evaluate(*parts, seed=seed, scores=set(scores) & set(SEEDED))
    return replace(seeded, knn=steady.knn, lr=steady.lr)


@own_modes()
def fit_encoder(
    method: str, settings: Settings, standardizer: Standardizer, rows: Rows, reporter: Reporter
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the encoder of a method and the names of what went wrong in training."""
    if method == "untrained":
        with Randomness(seed_of(settings.training.seed, BUILDING)).lent():
            encoder = build_encoder(settings, standardizer.shape, pretrained=True)
            chosen = torch.arange(min(len(rows), _STATISTICS_ROWS)) * len(rows) // min(len(rows), _STATISTICS_ROWS)
            # Batch normalisation of untrained weights has no statistics yet.
            update_bn((rows[part] for part in chosen.split(_STATISTICS_BATCH)), encoder)
            return encoder.eval(), ()
    fitted = fit(settings, standardizer, rows, reporter=reporter)
    return fitted.model.method.encoder, tuple(flag.name for flag in fitted.flags)


def embedded(
    encode: nn.Module, data: Dataset, train_rows: Rows, test_rows: Rows, *, processes: int = 1
) -> LabelledRows:
    """Embed a labelled data set, whose rows several processes may share."""
    assert data.test is not None  # the caller split it
    assert data.train.y is not None  # and checked its labels
    assert data.test.y is not None
    train, test = (embed(encode, rows, processes=processes) for rows in (train_rows, test_rows))
    return LabelledRows(train, data.train.y, test, data.test.y)


def raw_scaling(x: Samples) -> Scaling:
    """Return the units of raw features, which depend on the samples alone: pixels of pictures keep theirs.

    An encoder for pictures sees other units than one for vectors, and raw features are to be the same beside both.

    >>> raw_scaling(np.zeros((2, 8, 8), np.uint8)), raw_scaling(np.zeros((2, 64)))
    ('channels', 'auto')
    """
    return "channels" if len(x.shape) in (3, 4) and x.dtype == np.uint8 else SCALING


def raw_rows(*parts: Part, spans: Spans = ()) -> tuple[Raw, list[Rows]]:
    """Return the raw features of parts, in the units of the first: what makes an embedding of them, and their rows.

    ``spans`` are those of the data set: a category counts once, as in everything that is compared with raw features.
    """
    standardizer = Standardizer.fit(parts[0].x, scaling=raw_scaling(parts[0].x), spans=spans)
    rows = [make_rows(part.x, standardizer, origin=part.origin) for part in parts]
    return Raw(unit_rows=standardizer.unit_rows), rows


def score_run(run: Model, data: Dataset, *, seed: int, processes: int = 1) -> dict[str, Scores]:
    """Score a finished run's embedding beside raw features and the embedding of its encoder before training.

    ``processes`` is how many share the rows to embed.
    """
    check_scorable(data)
    assert data.test is not None  # it was just checked
    rows = [run.rows(part.x, where=data.name) for part in (data.train, data.test)]
    raw, of_raw = raw_rows(data.train, data.test, spans=data.spans)
    found = {"raw": evaluate(*embedded(raw, data, *of_raw), seed=seed)}
    for name, encode in (("untrained", _untrained(run, rows[0])), ("learned", run.embedding)):
        found[name] = evaluate(*embedded(encode, data, *rows, processes=processes), seed=seed)
    return found


def agreements(run: Model, data: Dataset) -> dict[str, float]:
    """Return how far neighbours in the embeddings of a run agree with those among raw features.

    They are looked for among at most ``_AGREEING_ROWS`` test rows, or training rows where there are no others. Of too
    few rows for neighbours nothing is returned.
    """
    part, _ = shown_part(data, most=_AGREEING_ROWS)
    if len(part) <= AGREEING:
        return {}
    rows = run.rows(part.x, where=data.name)
    raw, (of_raw,) = raw_rows(part, spans=data.spans)
    reference = embed(raw, of_raw)
    return {
        "learned": neighbour_agreement(reference, embed(run.embedding, rows)),
        "untrained": neighbour_agreement(reference, embed(_untrained(run, rows), rows)),
        "chance": AGREEING / (len(part) - 1),
    }


def _untrained(run: Model, rows: Rows) -> Embedding:
    """Return the embedding of a run's encoder before training."""
    encoder, _ = fit_encoder("untrained", run.settings, run.standardizer, rows, Quiet())
    return build_embedding(encoder, run.embedding.name, run.standardizer, rows)
