"""What training has made of a run, from its files of weights, or from the last intact checkpoint where it was stopped.

Both return the fields of a ``Model`` by name.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinoise.data.dataset import Dataset, fingerprint_parts
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.modes import Randomness
from pinoise.networks import load_weights, read_stored
from pinoise.networks.weights import StoredTensors
from pinoise.training.build import (
    build_embedding,
    build_encoder,
    check_size,
    restore_embedding,
    restore_noise,
    seeded_model,
)
from pinoise.training.callbacks import Record
from pinoise.training.checkpoint import Expected, Stored, find_checkpoint
from pinoise.training.config import Settings
from pinoise.training.folder import ENCODER_FILE, IN_MEMORY, NOISE_FILE, UNITS_FILE, DataRecord, run_identity
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.running import read_metrics


def from_files(path: Path, settings: Settings, standardizer: Standardizer) -> dict[str, Any]:
    """Restore what training has made of a finished run from its files of weights."""
    noise = None
    with Randomness(0).lent():  # the weights of the files replace what is drawn
        check_size(settings, standardizer.shape)
        encoder = build_encoder(settings, standardizer.shape)
        with _fitting(path / ENCODER_FILE) as stored:
            load_weights(encoder, stored.tensors, where=path / ENCODER_FILE)
        with _fitting(path / UNITS_FILE) as stored:
            embedding, outcome = restore_embedding(encoder, settings, standardizer, stored.tensors), stored.metadata
        if settings.is_learned:
            with _fitting(path / NOISE_FILE) as stored:
                noise = restore_noise(settings, standardizer, encoder, stored.tensors)
    found = {"embedding": embedding, "noise": noise, "history": read_metrics(path / "metrics.csv")}
    return {**found, "flags": outcome.get("flags", [])}


def from_checkpoint(
    path: Path, settings: Settings, standardizer: Standardizer, record: DataRecord, data: Dataset
) -> dict[str, Any]:
    """Restore a run without files of weights: it was stopped or killed, or it is still being trained."""
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    model, stored = stored_model(path, settings, standardizer, rows, record)
    embedding = build_embedding(model.method.encoder, settings.embedding, standardizer, rows)
    history = [Record(*line) for line in stored.history]
    finished = len(history) >= settings.training.epochs
    return {"embedding": embedding, "noise": model.noise, "history": history, "finished": finished}


def open_own(path: Path, settings: Settings, record: DataRecord, *, progress: bool = False) -> Dataset:
    """Read the data that a run was trained on. Data that has changed since is refused."""
    source = settings.data.source
    if source == IN_MEMORY:
        raise UserError(f"{path} was fitted in Python, on samples that no file here names: give the data.")
    data, _ = open_for_training(source, settings.data, progress=progress)
    if fingerprint_parts(data) != record.fingerprint:
        raise UserError(
            f"{source} has changed since {path} began, so its training rows are not known: restore the data, or start "
            "a new run."
        )
    return data


def stored_model(
    path: Path, settings: Settings, standardizer: Standardizer, rows: Rows, record: DataRecord
) -> tuple[ContrastiveModel, Stored]:
    """Return the model of a run's last intact checkpoint, and the checkpoint."""
    model = seeded_model(settings, standardizer, rows, pretrained=False)
    expected = Expected(model, identity=run_identity(settings, record.fingerprint))
    checkpoint, complaint = find_checkpoint(path / "checkpoints", expected)
    if checkpoint is None:
        raise UserError(
            f"{path / 'checkpoints'} is empty: the run was stopped before its first checkpoint, or they were deleted; "
            f"go on with: pinoise train --resume {shlex.quote(str(path))}"
        )
    if complaint is not None:
        warnings.warn(complaint, stacklevel=5)
    model.load_state_dict(checkpoint.stored.model)
    return model.eval(), checkpoint.stored


@contextmanager
def _fitting(path: Path) -> Iterator[StoredTensors]:
    """Yield what a file holds, and turn the error for tensors that do not fit into one sentence."""
    stored = read_stored(path)
    try:
        yield stored
    except (RuntimeError, UserError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"{path} does not fit the configuration beside it: the run folder is damaged, or a part of your own has "
            f"changed ({why})."
        ) from None
