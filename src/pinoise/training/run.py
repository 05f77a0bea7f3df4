"""Train from settings: in memory, or in a run folder that can be resumed at any moment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from pinoise.data.dataset import Dataset, fingerprint_parts
from pinoise.data.preparation import Preparation
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.data.tails import HEAVY_TAILS
from pinoise.errors import UserError
from pinoise.information import HealthFlag
from pinoise.modes import own_modes
from pinoise.networks import Embedding
from pinoise.training.automatic import NOISE_KINDS, Trial, choose_noise, described, with_noise
from pinoise.training.build import build_embedding, build_standardizer, seeded_model
from pinoise.training.checkpoint import LAST, PREVIOUS, Expected, Identity
from pinoise.training.config import Settings, embedding_of, follow
from pinoise.training.device import make_fabric, on_first
from pinoise.training.folder import check_usable, run_identity, settle_folder, write_weights
from pinoise.training.lock import hold
from pinoise.training.logs import RunLog
from pinoise.training.loop import make_optimizer, plan_epoch, train
from pinoise.training.metrics import model_health
from pinoise.training.model import ContrastiveModel
from pinoise.training.progress import Quiet, Record, Reporter
from pinoise.training.record import DataRecord
from pinoise.training.units import read_standardizer

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Fitted(NamedTuple):
    """A trained model on the CPU, the embedding of its encoder, its history and its health flags."""

    model: ContrastiveModel
    embedding: Embedding
    history: list[Record]
    flags: list[HealthFlag]
    trials: list[Trial]  # of ``views.noise`` auto, the chosen noise first; else none


@own_modes()
def fit(settings: Settings, standardizer: Standardizer, rows: Rows, *, reporter: Reporter) -> Fitted:
    """Build and train a model. The caller's random numbers and modes of torch stay as they are."""
    fabric = make_fabric(settings.training)
    settings, trials = _try_noises(settings, standardizer, rows, fabric=fabric)
    model = seeded_model(settings, standardizer, rows)
    history = train(model, rows, settings.training, fabric=fabric, reporter=reporter)
    model.to("cpu").eval()
    if model.noise is not None and model.noise.support is not None:
        model.noise.support.fetch = None  # the fitted model must not keep the training data in memory
    embedding = build_embedding(model.method.encoder, embedding_of(settings), standardizer, rows)
    return Fitted(model, embedding, history, run_health(model, rows, settings, history), trials)


def _try_noises(
    settings: Settings,
    standardizer: Standardizer,
    rows: Rows,
    *,
    fabric: Fabric,
    should_stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[Settings, list[Trial]]:
    """Return settings with the noise that trials chose, and the trials, if ``views.noise`` is auto.

    A run that goes on has the choice in its configuration, so there is nothing to try.
    """
    if not settings.is_automatic:
        return settings, []
    say = note if fabric.is_global_zero else lambda _: None
    say(f"trying {len(NOISE_KINDS)} kinds of noise, for as long as training takes together")
    trials = choose_noise(settings, standardizer, rows, fabric=fabric, should_stop=should_stop)
    say(f"the noise is {described(trials)}")
    return with_noise(settings, NOISE_KINDS[trials[0].name]), trials


def run_health(
    model: ContrastiveModel, rows: Rows, settings: Settings, history: list[Record], *, processes: int = 1
) -> list[HealthFlag]:
    """Return the health flags of a trained model, from its last epoch. ``processes`` is the number that trained it."""
    batch_size = min(settings.training.batch_size, len(rows) - len(rows) % processes)
    return model_health(model, rows, contrast=history[-1].metrics["contrast"], batch_size=batch_size)


@own_modes()
def run_training(
    path: Path,
    settings: Settings,
    *,
    reporter: Reporter,
    should_stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda _: None,
    progress: bool = False,
    fresh: bool = False,
) -> Fitted:
    """Train in a run folder, from the start or from its newest intact checkpoint.

    Args:
        path: the run folder, new or existing. One process at a time changes it, once data and model are sound.
        settings: the settings of the run. In a run that resumes, only those that ``MAY_CHANGE`` lists may differ.
        reporter: called as training proceeds.
        should_stop: called after every step; True stops the run.
        note: called before training with sentences about the data and about a damaged checkpoint.
        progress: whether long work before training shows a progress bar.
        fresh: whether the folder must be new. A run that another process has made there meanwhile is then refused.
    """
    check_usable(path)
    new = fresh or not (path / "config.yaml").exists()
    settings, data, preparation = _opened(settings, progress=progress)
    fabric = make_fabric(settings.training, together=True)
    fabric.launch()
    begun = any((path / "checkpoints" / name).exists() for name in (LAST, PREVIOUS))
    standardizer = _standardizer_of(path, settings, data, begun=begun)
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    record = on_first(fabric, partial(_describe_data, settings, data, preparation, standardizer))  # one pass over it
    for sentence in (*record.notes, *_notes_on_batches(settings, rows, fabric)) if fabric.is_global_zero else ():
        note(sentence)
    del data  # rows in memory are a copy, so the original can be freed
    settings, trials = _try_noises(settings, standardizer, rows, fabric=fabric, should_stop=should_stop, note=note)
    model = seeded_model(settings, standardizer, rows, pretrained=not begun, progress=progress)
    identity = run_identity(settings, record.fingerprint)

    def settle() -> Path | None:
        folder.enter_context(hold(path, note=note))
        expected = _expected(model, settings, identity, len(rows))
        return settle_folder(path, settings, _noted(record, trials), standardizer, expected, new=new, note=note)

    with ExitStack() as folder:
        checkpoint = on_first(fabric, settle)
        log: Reporter = folder.enter_context(RunLog(path, reporter)) if fabric.is_global_zero else Quiet()
        history = train(
            model,
            rows,
            settings.training,
            fabric=fabric,
            reporter=log,
            checkpoints=path / "checkpoints",
            identity=identity,
            resume_from=checkpoint,
            should_stop=should_stop,
        )
        embedding = build_embedding(model.method.encoder, embedding_of(settings), standardizer, rows)
        on_first(fabric, partial(write_weights, path, model, embedding))
    flags = run_health(model, rows, settings, history, processes=fabric.world_size)
    return Fitted(model, embedding, history, flags, trials)


def _opened(settings: Settings, *, progress: bool) -> tuple[Settings, Dataset, Preparation]:
    """Return the data of a run, and its settings with what follows from the data where they are silent."""
    data, preparation = open_for_training(settings.data.source, settings.data, progress=progress)
    settings, _, said = follow(settings, data.train.x)
    return settings, replace(data, notes=(*data.notes, *said)), preparation


def _expected(model: ContrastiveModel, settings: Settings, identity: Identity, n_rows: int) -> Expected:
    """Return what a checkpoint of a run must fit."""
    optimizer = make_optimizer(model, settings.training, torch.device("cpu"))
    return Expected(model, optimizer, identity, max(1, n_rows // settings.training.batch_size))


def _standardizer_of(path: Path, settings: Settings, data: Dataset, *, begun: bool) -> Standardizer:
    """Return the stored units of a run with checkpoints, or learn the units in a pass over all samples."""
    if begun:
        with suppress(UserError):  # absent or damaged
            standardizer = read_standardizer(path / "standardizer.safetensors")
            if standardizer.fits(data.shape):
                return standardizer
    return build_standardizer(settings, data.train.x, spans=data.spans)


def _notes_on_units(settings: Settings, standardizer: Standardizer) -> list[str]:
    """Return a note if tails are compressed and nobody has asked for it."""
    if standardizer.tails is None or settings.data.scaling != "auto":
        return []
    return [HEAVY_TAILS]


def _notes_on_batches(settings: Settings, rows: Rows, fabric: Fabric) -> list[str]:
    """Return a note if batches are smaller than they should be."""
    _, share = plan_epoch(len(rows), settings.training.batch_size, fabric.world_size)
    batch = share * fabric.world_size
    if batch == settings.training.batch_size:
        return []
    return [f"a batch has {batch} rows instead of {settings.training.batch_size}, as there are no more"]


def _describe_data(
    settings: Settings, data: Dataset, preparation: Preparation, standardizer: Standardizer
) -> DataRecord:
    """Return the record of the data: the rows that were trained on, and how to read later data in the same way."""
    return DataRecord(
        source=settings.data.source,
        rows=len(data.train),
        shape=list(data.shape),
        fingerprint=fingerprint_parts(data),
        feature_names=None if data.feature_names is None else list(data.feature_names),
        class_names=None if data.class_names is None else list(data.class_names),
        notes=[*data.notes, *_notes_on_units(settings, standardizer)],
        preparation=preparation.to_json(),
    )


def _noted(record: DataRecord, trials: list[Trial]) -> DataRecord:
    """Return the record with a note on the noise that trials chose, if there were any."""
    notes = [f"the noise is {described(trials)}"] if trials else []
    return record.model_copy(update={"notes": [*record.notes, *notes]})
