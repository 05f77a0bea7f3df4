"""What training has made of a run, from its files of weights, or from the last intact checkpoint where it was stopped.

Both return the fields of a ``Model`` by name.
"""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any

from pinoise.data.dataset import Dataset, fingerprint_parts
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.modes import Randomness
from pinoise.networks import load_weights, read_stored, read_tensors
from pinoise.training.build import build_embedding, build_encoder, seeded_model
from pinoise.training.build.model import restore_embedding
from pinoise.training.build.parts import check_size, restore_noise
from pinoise.training.checkpoint import CheckpointContent, find_checkpoint
from pinoise.training.config import Settings
from pinoise.training.folder import (
    ENCODER_FILE,
    IN_MEMORY,
    NOISE_FILE,
    UNITS_FILE,
    DataRecord,
    check_unchanged,
    run_identity,
)
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.running import read_metrics


def from_files(path: Path, settings: Settings, standardizer: Standardizer) -> dict[str, Any]:
    """Restore what training has made of a finished run from its files of weights."""
    encoder_file, noise_file, noise = path / ENCODER_FILE, path / NOISE_FILE, None
    check_size(settings, standardizer.shape)
    try:
        with Randomness(0).lent():  # the weights of the files replace what is drawn
            encoder = build_encoder(settings, standardizer.shape)
            load_weights(encoder, read_tensors(encoder_file), where=encoder_file)
            units = read_stored(path / UNITS_FILE)
            embedding = restore_embedding(encoder, settings, standardizer, units.tensors)
            if settings.is_learned:
                noise = restore_noise(settings, standardizer, encoder, read_tensors(noise_file))
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise UserError(
            f"the weights in {path} do not fit its configuration: the run folder is damaged, or a part of your own has "
            f"changed ({why})."
        ) from None
    found = {"embedding": embedding, "noise": noise, "history": read_metrics(path / "metrics.csv")}
    return {**found, "flags": units.metadata.get("flags", [])}


def from_checkpoint(
    path: Path, settings: Settings, standardizer: Standardizer, record: DataRecord, data: Dataset
) -> dict[str, Any]:
    """Restore a run without files of weights: it was stopped or killed, or it is still being trained."""
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    model, stored = stored_model(path, settings, standardizer, rows, record)
    embedding = build_embedding(model.method.encoder, settings.embedding, standardizer, rows)
    history = stored.records
    finished = len(history) >= settings.training.epochs
    return {"embedding": embedding, "noise": model.noise, "history": history, "finished": finished}


def open_own(path: Path, settings: Settings, record: DataRecord, *, progress: bool = False) -> Dataset:
    """Read the data that a run was trained on. Data that has changed since is refused."""
    source = settings.data.source
    if source == IN_MEMORY:
        raise UserError(f"{path} was fitted in Python, on samples that no file here names: give the data.")
    data, _ = open_for_training(source, settings.data, progress=progress)
    check_unchanged(path, settings, record, fingerprint_parts(data))
    return data


def stored_model(
    path: Path, settings: Settings, standardizer: Standardizer, rows: Rows, record: DataRecord
) -> tuple[ContrastiveModel, CheckpointContent]:
    """Return the model of a run's last intact checkpoint, and the checkpoint."""
    model = seeded_model(settings, standardizer, rows, pretrained=False)
    identity = run_identity(settings, record.fingerprint)
    checkpoint = find_checkpoint(path / "checkpoints", model, identity)
    if checkpoint is None:
        raise UserError(
            f"{path / 'checkpoints'} is empty: the run was stopped before its first checkpoint, or they were deleted; "
            f"go on with: pinoise train --resume {shlex.quote(str(path))}"
        )
    if checkpoint.complaint is not None:
        warnings.warn(checkpoint.complaint, stacklevel=5)
    model.load_state_dict(checkpoint.stored.model)
    return model.eval(), checkpoint.stored
