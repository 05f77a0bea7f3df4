"""Train from settings: in memory, or in a run folder that can be resumed at any moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import yaml

from pinoise.data.catalogue import is_name
from pinoise.data.dataset import Dataset, Samples, fingerprint_parts
from pinoise.data.preparation import Preparation
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.data.tails import HEAVY_TAILS
from pinoise.errors import UserError
from pinoise.files import (
    LOCK_FILES,
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
from pinoise.information import HealthFlag
from pinoise.modes import own_modes
from pinoise.networks import Embedding, write_tensors
from pinoise.training.automatic import NOISE_KINDS, Trial, choose_noise, described, with_noise
from pinoise.training.build import build_embedding, build_standardizer, embedding_tensors, seeded_model
from pinoise.training.checkpoint import DAMAGED, LAST, PREVIOUS, Expected, Identity, find_checkpoint
from pinoise.training.config import Settings, distrusted, dump_yaml, embedding_of, parse_settings, read_yaml
from pinoise.training.device import describe_environment, make_fabric, on_first
from pinoise.training.lock import hold, refuse_if_held
from pinoise.training.logs import RunLog
from pinoise.training.loop import make_optimizer, train
from pinoise.training.metrics import model_health
from pinoise.training.model import ContrastiveModel
from pinoise.training.processes import is_first
from pinoise.training.progress import Quiet, Record, Reporter
from pinoise.training.record import DataRecord, read_record, write_record
from pinoise.training.units import read_standardizer, standardizer_tensors

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# The format of run folders. It increases when older folders can no longer be read.
RUN_FORMAT = 5


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
    batch_size = min(settings.training.batch_size, len(rows) // processes)
    return model_health(model, rows, contrast=history[-1].metrics["contrast"], batch_size=batch_size)


def check_folder(path: Path) -> None:
    """Refuse a path that cannot become a run folder. Nothing is created."""
    _check_usable(path)
    _check_free(path)


def _check_usable(path: Path) -> None:
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
    if path.exists() and any(file.name not in LOCK_FILES and not _is_leftover(file) for file in path.iterdir()):
        raise UserError(f"{path} is not empty and not a run folder: choose another folder with --out.")


def _is_leftover(file: Path) -> bool:
    return replaced_by(file.name) in RUN_FILES


def create_folder(path: Path, settings: Settings) -> None:
    """Create a run folder and write its configuration. A folder that is not empty is refused."""
    _check_free(path)
    for where, part in settings.parts.items():
        if part.own and ":" not in part.name:
            raise UserError(
                f"{where} is {part.name!r}, which has no import path, so a run folder cannot name it: "
                "give a class or function of a module."
            )
    text = config_text(settings)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    write_text(path / "config.yaml", text)


def config_text(settings: Settings) -> str:
    """Return ``config.yaml`` with full paths, so that files are found from any folder."""
    try:
        return dump_yaml({"format": RUN_FORMAT, **_config_values(settings)})
    except yaml.YAMLError as error:
        raise UserError(f"the settings hold an object that a file cannot ({error}): give a name or a number.") from None


def _config_values(settings: Settings) -> dict[str, Any]:
    values: dict[str, Any] = _with_full_paths(settings.model_dump())
    if not is_name(settings.data.source):
        values["data"]["source"] = str(Path(settings.data.source).expanduser().resolve())
    return values


def _with_full_paths(value: Any) -> Any:
    """Return nested settings with full paths as strings, and tuples as lists."""
    if isinstance(value, Path):
        return str(value.expanduser().resolve())
    if isinstance(value, dict):
        return {key: _with_full_paths(inner) for key, inner in value.items()}
    return [_with_full_paths(inner) for inner in value] if isinstance(value, list | tuple) else value


def read_config(path: Path, *, trust: bool = False) -> Settings:
    """Read ``config.yaml`` of a run folder. Import paths in it are followed only with ``trust``."""
    config = path / "config.yaml"
    if not config.is_file():
        raise UserError(f"{path} is not a run folder: it has no config.yaml.")
    values = read_yaml(config)
    if (found := values.pop("format", 1)) != RUN_FORMAT:
        raise UserError(
            f"{path} was made by {_maker(path)}, which wrote run folders of format {found}; this version reads format "
            f"{RUN_FORMAT}: use the version that made it, or train again."
        )
    return parse_settings(values, distrust=distrusted(config, trust=trust))


def _maker(path: Path) -> str:
    """Return the version that made a run folder, from its environment.json."""
    try:
        return f"pinoise {read_json(path / 'environment.json')['packages']['pinoise']}"
    except (UserError, OSError, KeyError, TypeError):
        return "another version of pinoise"


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
    _check_usable(path)
    new = fresh or not (path / "config.yaml").exists()
    data, preparation = open_for_training(settings.data.source, settings.data, progress=progress)
    fabric = make_fabric(settings.training, together=True)
    fabric.launch()
    begun = any((path / "checkpoints" / name).exists() for name in (LAST, PREVIOUS))
    standardizer = _standardizer_of(path, settings, data.train.x, begun=begun)
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    record = on_first(fabric, partial(_describe_data, settings, data, preparation, standardizer))  # one pass over it
    for sentence in record.notes if fabric.is_global_zero else ():
        note(sentence)
    del data  # rows in memory are a copy, so the original can be freed
    settings, trials = _try_noises(settings, standardizer, rows, fabric=fabric, should_stop=should_stop, note=note)
    model = seeded_model(settings, standardizer, rows, pretrained=not begun, progress=progress)
    identity = run_identity(settings, record.fingerprint)

    def settle() -> Path | None:
        folder.enter_context(hold(path, note=note))
        expected = _expected(model, settings, identity, len(rows))
        return _settle_folder(path, settings, _noted(record, trials), standardizer, expected, new=new, note=note)

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
        on_first(fabric, partial(_write_weights, path, model, embedding))
    flags = run_health(model, rows, settings, history, processes=fabric.world_size)
    return Fitted(model, embedding, history, flags, trials)


def _expected(model: ContrastiveModel, settings: Settings, identity: Identity, n_rows: int) -> Expected:
    """Return what a checkpoint of a run must fit."""
    optimizer = make_optimizer(model, settings.training, torch.device("cpu"))
    return Expected(model, optimizer, identity, partial(_steps, n_rows, settings.training.batch_size))


def _steps(n_rows: int, batch_size: int, processes: int) -> int:
    """Return the steps in an epoch.

    >>> _steps(1000, 256, 2)
    1
    """
    share = max(1, n_rows // processes)
    return share // min(batch_size, share)


def run_identity(settings: Settings, fingerprint: str) -> Identity:
    """Return what a run's checkpoints carry, so that they are not taken for those of another run."""
    return Identity(json.dumps(_config_values(settings), default=str), fingerprint)


def _standardizer_of(path: Path, settings: Settings, x: Samples, *, begun: bool) -> Standardizer:
    """Return the stored units of a run with checkpoints, or learn the units in a pass over all samples."""
    if begun:
        with suppress(UserError):  # absent or damaged
            standardizer = read_standardizer(path / "standardizer.safetensors")
            if standardizer.fits(tuple(x.shape[1:])):
                return standardizer
    return build_standardizer(settings, x)


def _notes_on_units(settings: Settings, standardizer: Standardizer) -> list[str]:
    """Return a note if tails are compressed and nobody has asked for it."""
    if standardizer.tails is None or settings.data.scaling != "auto":
        return []
    return [HEAVY_TAILS]


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


def _settle_folder(
    path: Path,
    settings: Settings,
    record: DataRecord,
    standardizer: Standardizer,
    expected: Expected,
    *,
    new: bool,
    note: Callable[[str], None],
) -> Path | None:
    """Write what is known before the first step. Return the checkpoint to resume from, if any."""
    if new:  # another process may have made a run there since
        create_folder(path, settings)
    for file in path.iterdir():
        if _is_leftover(file):
            file.unlink()
    folder = path / "checkpoints"
    with writing(folder):
        folder.mkdir(exist_ok=True)
    if (path / "data.json").exists():
        _check_unchanged(path, settings, record)
    checkpoint, complaint = find_checkpoint(folder, expected)
    if complaint is not None:
        note(complaint)
        (folder / LAST).replace(folder / DAMAGED)  # the next checkpoint must not replace a sound one by it
    if checkpoint is None or not (path / "data.json").exists():
        write_record(path / "data.json", record)
        write_json(path / "environment.json", describe_environment())
    write_tensors(path / "standardizer.safetensors", standardizer_tensors(standardizer))
    if read_yaml(path / "config.yaml") != yaml.safe_load(text := config_text(settings)):
        write_text(path / "config.yaml", text)
    return checkpoint


def check_links(path: Path) -> None:
    """Refuse a folder inside a run that is a link to elsewhere: resuming the run would write there."""
    for folder in (path / name for name in RUN_FOLDERS):
        if not real(folder).is_relative_to(real(path)):
            raise UserError(
                f"{folder} is a link to {real(folder)}, where resuming the run would write: if you trust it, pass "
                "--trust."
            )


def _check_unchanged(path: Path, settings: Settings, record: DataRecord) -> None:
    before = read_record(path / "data.json")
    if before.fingerprint != record.fingerprint:
        how = "its values differ" if before.size == record.size else f"then {before.size}, now {record.size}"
        raise UserError(
            f"{settings.data.source} has changed since {path} began ({how}): restore the data, or start a new run."
        )


def _write_weights(path: Path, model: ContrastiveModel, embedding: Embedding) -> None:
    write_tensors(path / "encoder.safetensors", model.method.encoder.state_dict())
    write_tensors(path / "embedding.safetensors", embedding_tensors(embedding))
    if model.noise is not None:
        write_tensors(path / "noise.safetensors", model.noise.state_dict())
