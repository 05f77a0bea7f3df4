"""The folder of a run: what may become one, what stands in it before the first step, and its weights at the end."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import torch
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from pinoise.data.source import is_name
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import (
    LOCK,
    RUN_FILES,
    RUN_FOLDERS,
    check_writable,
    read_json,
    real,
    replaced_by,
    write_json,
    write_text,
    writing,
)
from pinoise.networks import Embedding, write_tensors
from pinoise.networks.mlp import of_processor
from pinoise.noise import PiNoise
from pinoise.training.build.model import standardizer_tensors
from pinoise.training.build.parts import memory_gb
from pinoise.training.checkpoint import DAMAGED, LAST, RunIdentity, find_checkpoint
from pinoise.training.config import Settings, complete, dump_yaml, parse_settings, read_yaml
from pinoise.training.config.parse import distrusted
from pinoise.training.metrics import has_stalled, held_out_losses
from pinoise.training.processes import is_first
from pinoise.training.running import refuse_if_held


class DataRecord(BaseModel):
    """The rows that a run was trained on, and how to read later data in the same way, as in ``data.json``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    source: str
    rows: Annotated[int, Field(ge=1)]
    shape: list[Annotated[int, Field(ge=1)]]
    fingerprint: str
    feature_names: list[str] | None
    class_names: list[str] | None
    notes: list[str]
    preparation: dict[str, Any]

    @property
    def size(self) -> str:
        """The number and the shape of the rows, in words."""
        return f"{self.rows} rows of {' × '.join(map(str, self.shape))}"


def read_record(path: Path) -> DataRecord:
    """Read ``data.json``. Refuse one that lacks something."""
    values = read_json(path)
    try:
        return DataRecord.model_validate(values)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{path} has no sound entry {where!r}: the run folder is damaged.") from None


# The files of a finished run's weights. A run that goes on loses them, the encoder first.
WEIGHTS = ENCODER_FILE, UNITS_FILE, NOISE_FILE = ("encoder.safetensors", "embedding.safetensors", "noise.safetensors")
STANDARDIZER_FILE, CLASSIFIER_FILE = "standardizer.safetensors", "classifier.safetensors"

IN_MEMORY = "(in memory)"
"""The source of what was fitted in Python, on rows that its folder does not name."""

# The format of run folders. It increases when older folders can no longer be read.
RUN_FORMAT = 6


def check_folder(path: Path) -> None:
    """Refuse a path that cannot become a run folder. Nothing is created."""
    check_usable(path)
    _check_free(path)


def check_usable(path: Path) -> None:
    """Refuse a path that cannot be trained in now."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file: choose another folder with --out.")
    check_writable(path, what="a run")
    if is_first():  # the others of the group need not ask
        refuse_if_held(path)


def _check_free(path: Path) -> None:
    """Refuse a folder that holds anything but locks and what a killed process left before its configuration."""
    if (path / "config.yaml").exists():
        raise UserError(f"{path} already holds a run: choose another --out, or continue it with --resume {path}.")
    if path.exists() and any(file.name != LOCK and not _is_leftover(file) for file in path.iterdir()):
        raise UserError(f"{path} is not empty and not a run folder: choose another folder with --out.")


def _is_leftover(file: Path) -> bool:
    return replaced_by(file.name) in RUN_FILES


def create_folder(path: Path, settings: Settings) -> None:
    """Create a run folder and write its configuration. A folder that is not empty is refused."""
    _check_free(path)
    for where, part in settings.parts.items():
        if part.own and ":" not in part.name:
            raise UserError(
                f"{where} is {part.name!r}, which has no import path, so a folder cannot name it: give a class or "
                "function of a module of yours, or pickle the estimator."
            )
    text = config_text(settings)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    write_text(path / "config.yaml", text)


def config_text(settings: Settings) -> str:
    """Return ``config.yaml`` with full paths, so that files are found from any folder."""
    values = settings.model_dump()
    values["data"]["source"] = full_source(settings)
    try:
        return dump_yaml({"format": RUN_FORMAT, **values})
    except yaml.YAMLError as error:
        raise UserError(f"the settings hold an object that a file cannot ({error}): give a name or a number.") from None


def full_source(settings: Settings) -> str:
    """Return the data of a run by its name or its full path, which a run that goes on from another folder finds."""
    source = settings.data.source
    return source if source == IN_MEMORY or is_name(source) else str(Path(source).expanduser().resolve())


def read_config(path: Path, *, trust: bool = False) -> Settings:
    """Read ``config.yaml`` of a run folder. Import paths in it are followed only with ``trust``."""
    config = path / "config.yaml"
    if not config.is_file():
        raise UserError(f"{path} is not a run folder: it has no config.yaml.")
    values = read_yaml(config)
    if (found := values.pop("format", 1)) != RUN_FORMAT:
        raise UserError(
            f"{path} was made by another version of pinoise, which wrote run folders of format {found}; this version "
            f"reads format {RUN_FORMAT}: use the version that made it, or train again."
        )
    return complete(parse_settings(values, distrust=distrusted(config, trust=trust)))


def run_identity(settings: Settings, fingerprint: str) -> RunIdentity:
    """Return what a run's checkpoints carry, so that they are not taken for those of another run."""
    return RunIdentity(config_text(settings), fingerprint)


def settle_folder(
    path: Path,
    settings: Settings,
    record: DataRecord,
    standardizer: Standardizer,
    model: nn.Module,
    *,
    steps: int,
    new: bool,
    note: Callable[[str], None],
) -> Path | None:
    """Write what is known before the first step. Return the checkpoint to resume from, if any.

    Args:
        path: the run folder.
        settings: of the run.
        record: of its data.
        standardizer: the units of its samples.
        model: which its checkpoints must fit.
        steps: in an epoch.
        new: whether the folder must be new.
        note: called with a sentence about a damaged checkpoint.
    """
    if new:  # another process may have made a run there since
        create_folder(path, settings)
    for file in path.iterdir():
        if _is_leftover(file):
            file.unlink()
    folder = path / "checkpoints"
    with writing(folder):
        folder.mkdir(exist_ok=True)
    if (path / "data.json").exists():
        check_unchanged(path, settings, read_record(path / "data.json"), record.fingerprint)
    checkpoint = find_checkpoint(folder, model, run_identity(settings, record.fingerprint))
    if checkpoint is not None:
        least, epochs = -(-checkpoint.stored.step // steps), settings.training.epochs
        if epochs < least:
            raise UserError(
                f"--epochs {epochs} is fewer than {path} has trained for, which cannot be undone: give at least "
                f"{least}, or use the run as it stands."
            )
        if checkpoint.complaint is not None:
            note(checkpoint.complaint)
            (folder / LAST).replace(folder / DAMAGED)  # the next checkpoint must not replace a sound one by it
    if not (path / "data.json").exists():
        write_json(path / "data.json", record.model_dump(mode="json"))
    if checkpoint is None or not (path / "environment.json").exists():
        write_json(path / "environment.json", describe_environment())
    write_tensors(path / STANDARDIZER_FILE, standardizer_tensors(standardizer))
    if read_yaml(path / "config.yaml") != yaml.safe_load(text := config_text(settings)):
        write_text(path / "config.yaml", text)
    if checkpoint is None:
        return None
    unseen = held_out_losses(checkpoint.stored.records)
    if checkpoint.stored.step < epochs * steps and not has_stalled(unseen, settings.training):  # it goes on
        for name in WEIGHTS:  # of an earlier end: what counts from now on is the checkpoint
            (path / name).unlink(missing_ok=True)
    return checkpoint.path


def check_links(path: Path) -> None:
    """Refuse a folder inside a run that is a link to elsewhere: resuming the run would write there."""
    for folder in (path / name for name in RUN_FOLDERS):
        if not real(folder).is_relative_to(real(path)):
            raise UserError(
                f"{folder} is a link to {real(folder)}, where resuming the run would write: if you trust it, pass "
                "--trust."
            )


def check_unchanged(path: Path, settings: Settings, before: DataRecord, fingerprint: str) -> None:
    """Refuse data that is not what a run was trained on."""
    if before.fingerprint != fingerprint:
        raise UserError(
            f"{settings.data.source} has changed since {path} began with {before.size}: restore the data, or start a "
            "new run."
        )


def write_weights(path: Path, embedding: Embedding, noise: PiNoise | None, *, flags: Sequence[str]) -> None:
    """Write the weights of a finished run, the encoder last: a run that has it has all.

    The units of the embedding have the health flags beside them, which ``data.json`` cannot know.
    """
    if noise is not None:
        write_tensors(path / NOISE_FILE, noise.state_dict())
    write_tensors(path / UNITS_FILE, embedding.blocks._asdict(), metadata={"flags": list(flags)})
    write_tensors(path / ENCODER_FILE, embedding.encoder.state_dict())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to make, which takes the place of ``path`` when the block ends. A model there is replaced."""
    if path.is_file() or (path.is_dir() and not {file.name for file in path.iterdir()} <= RUN_FILES):
        raise UserError(f"{path} is there already, and is no saved model: choose another folder.")
    check_writable(path, what="a model")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        yield temporary
        with writing(path):
            if path.exists():
                path.rename(temporary.with_suffix(".old"))
            temporary.rename(path)
    finally:
        for left in (temporary, temporary.with_suffix(".old")):
            shutil.rmtree(left, ignore_errors=True)


def describe_environment() -> dict[str, Any]:
    """Return versions, hardware and date.

    >>> sorted(describe_environment())
    ['cpu', 'cpu_count', 'cuda', 'date', 'memory_gb', 'packages', 'platform', 'python', 'torch_threads']
    """
    packages = ("pinoise", "torch", "numpy", "scipy", "scikit-learn")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": of_processor("model name"),
        "cpu_count": os.cpu_count(),
        "memory_gb": memory_gb(),
        "torch_threads": torch.get_num_threads(),
        "cuda": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "packages": {name: version(name) for name in packages},
    }
