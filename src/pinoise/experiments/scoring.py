"""One encoder fitted and its embeddings scored; labels are used only to score."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import nn

from pinoise.choices import EmbeddingName
from pinoise.data.dataset import Dataset
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Scaling, Standardizer
from pinoise.evaluation import Scores, embed, evaluate
from pinoise.experiments.results import Cell
from pinoise.experiments.sources import check_scorable
from pinoise.modes import own_modes
from pinoise.networks import Embedding, settle_statistics
from pinoise.randomness import Randomness
from pinoise.training.build import build_embedding, build_encoder
from pinoise.training.config import Settings
from pinoise.training.device import BUILDING, seed_of
from pinoise.training.load import Run
from pinoise.training.progress import Quiet, Reporter
from pinoise.training.run import fit

_STATISTICS_ROWS, _STATISTICS_BATCH = 2048, 256  # for the batch normalisation of encoders that are not trained


class Prepared(NamedTuple):
    """A data set as encoders see it."""

    standardizer: Standardizer
    train: Rows
    test: Rows

    @classmethod
    def of(cls, data: Dataset, scaling: Scaling) -> Prepared:
        """Learn the units of the training part and take both in them."""
        assert data.test is not None  # it was checked
        standardizer = Standardizer.fit(data.train.x, scaling=scaling)
        parts = (make_rows(part.x, standardizer, origin=part.origin) for part in (data.train, data.test))
        return cls(standardizer, *parts)


def fit_cells(
    data: Dataset,
    prepared: Prepared,
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


@own_modes()
def fit_encoder(
    method: str, settings: Settings, standardizer: Standardizer, rows: Rows, reporter: Reporter
) -> tuple[nn.Module | None, tuple[str, ...]]:
    """Return the trained encoder of a method, none for raw features, and the names of what went wrong in training."""
    if method == "raw":
        return None, ()
    if method == "untrained":
        with Randomness(seed_of(settings.training.seed, BUILDING)).feeding():
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


def score_run(run: Run, data: Dataset, *, seed: int) -> dict[str, Scores]:
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
