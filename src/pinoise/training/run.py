"""A run folder: a configuration and data in, weights and curves out, resumable at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from pinoise.data.dataset import Dataset
from pinoise.data.preparation import Preparation
from pinoise.data.rows import make_rows
from pinoise.data.source import fingerprint, open_source
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.information import HealthFlag, check_noise
from pinoise.training.build import build_model
from pinoise.training.checkpoint import find_checkpoint
from pinoise.training.device import make_fabric
from pinoise.training.environment import describe_environment
from pinoise.training.files import read_json, standardizer_tensors, write_json, write_tensors, write_text
from pinoise.training.logs import RunLog
from pinoise.training.loop import Reporter, noise_summary, train
from pinoise.training.model import ContrastiveModel
from pinoise.training.parse import parse_settings, read_yaml
from pinoise.training.settings import Settings
from pinoise.training.state import Record, seed_of

_BUILDING = 0  # the purpose of these random numbers, see seed_of


@dataclass(frozen=True)
class Outcome:
    """What a run ended with."""

    history: list[Record]
    flags: list[HealthFlag]
    notes: list[str]


def create_folder(path: Path, settings: Settings) -> None:
    """Make a new run folder and write its configuration; a folder that holds anything is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        used = any(path.iterdir())
    except NotADirectoryError:
        raise UserError(f"{path} cannot be a run folder: a file is in the way; choose another --out.") from None
    except FileExistsError:
        raise UserError(f"{path} is a file: choose another folder with --out.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): choose another folder with --out.") from None
    if used:
        raise UserError(f"{path} is already used: choose another --out, or go on with it by --resume {path}.")
    if not os.access(path, os.W_OK):
        raise UserError(f"{path} is not writable: choose another folder with --out.")
    (path / "checkpoints").mkdir()
    write_config(path, settings)


def write_config(path: Path, settings: Settings) -> None:
    """Write ``config.yaml``."""
    write_text(path / "config.yaml", yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False))


def read_config(path: Path) -> Settings:
    """Read ``config.yaml`` of a run folder."""
    config = path / "config.yaml"
    if not config.is_file():
        raise UserError(f"{path} is not a run folder: it has no config.yaml.")
    return parse_settings(read_yaml(config))


def run_training(
    path: Path,
    settings: Settings,
    *,
    reporter: Reporter,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train in a run folder from wherever it stands: from the start, or from its newest sound checkpoint."""
    data, preparation = open_source(
        settings.data.source,
        label=settings.data.label,
        missing=settings.data.missing,
        rows=settings.data.rows,
    )
    _settle_data(path, settings, data, preparation)
    fabric = make_fabric(settings.training)
    fabric.launch()
    standardizer = Standardizer.fit(data.train.x)
    rows = make_rows(data.train.x, standardizer)
    torch.manual_seed(seed_of(settings.training.seed, _BUILDING))
    model = build_model(settings, standardizer, rows)
    checkpoint, complaint = find_checkpoint(path / "checkpoints")
    log = RunLog(path, reporter) if fabric.is_global_zero else None
    try:
        history = train(
            model,
            rows,
            settings.training,
            fabric=fabric,
            reporter=log or reporter,
            checkpoints=path / "checkpoints",
            resume_from=checkpoint,
            should_stop=should_stop,
        )
    finally:
        if log is not None:
            log.close()
    if fabric.is_global_zero:
        _write_weights(path, model, standardizer)
    probe = fabric.to_device(rows[torch.arange(min(256, len(rows)))])
    learned = model.noise is not None and model.objective.learns_noise
    return Outcome(
        history=history,
        flags=check_noise(noise_summary(model, probe)) if learned else [],
        notes=[*data.notes, *([complaint] if complaint else [])],
    )


def _settle_data(path: Path, settings: Settings, data: Dataset, preparation: Preparation | None) -> None:
    """Write down what the run learns from, or check that a resumed run still finds the same."""
    record: dict[str, Any] = {
        "source": settings.data.source,
        "rows": len(data.train),
        "shape": list(data.shape),
        "fingerprint": fingerprint(data.train.x),
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "class_names": None if data.class_names is None else list(data.class_names),
        "notes": list(data.notes),
        "preparation": None if preparation is None else preparation.to_json(),
    }
    file = path / "data.json"
    if file.exists():
        before = read_json(file)
        if before.get("fingerprint") != record["fingerprint"]:
            raise UserError(
                f"{settings.data.source} has changed since {path} began (then {before.get('rows')} rows of shape "
                f"{before.get('shape')}, now {record['rows']} of {record['shape']}): start a new run for it."
            )
        return
    write_json(file, record)
    write_json(path / "environment.json", describe_environment())


def _write_weights(path: Path, model: ContrastiveModel, standardizer: Standardizer) -> None:
    write_tensors(path / "standardizer.safetensors", standardizer_tensors(standardizer))
    write_tensors(path / "encoder.safetensors", model.method.encoder.state_dict())
    if model.noise is not None:
        write_tensors(path / "noise.safetensors", model.noise.state_dict())
