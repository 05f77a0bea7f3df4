"""Train from settings: in memory, or in a run folder that can be resumed at any moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pinoise.data.catalogue import is_name
from pinoise.data.dataset import Dataset, Samples, fingerprint_parts
from pinoise.data.preparation import Preparation
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import RUN_FOLDERS, check_writable, read_json, real, write_json, write_text
from pinoise.information import HealthFlag
from pinoise.modes import own_modes
from pinoise.networks import write_tensors
from pinoise.training.build import build_standardizer, seeded_model
from pinoise.training.checkpoint import find_checkpoint
from pinoise.training.config import Settings, distrusted, parse_settings, read_yaml
from pinoise.training.device import describe_environment, make_fabric, on_first
from pinoise.training.logs import RunLog
from pinoise.training.loop import train
from pinoise.training.metrics import model_health
from pinoise.training.model import ContrastiveModel
from pinoise.training.progress import Quiet, Record, Reporter
from pinoise.training.units import read_standardizer, standardizer_tensors

# The format of run folders. It increases when older folders can no longer be read.
RUN_FORMAT = 2


class Fitted(NamedTuple):
    """A trained model on the CPU, its history and its health flags."""

    model: ContrastiveModel
    history: list[Record]
    flags: list[HealthFlag]


@own_modes()
def fit(settings: Settings, standardizer: Standardizer, rows: Rows, *, reporter: Reporter) -> Fitted:
    """Build and train a model. The caller's random numbers and modes of torch stay as they are."""
    fabric = make_fabric(settings.training)
    model = seeded_model(settings, standardizer, rows)
    history = train(model, rows, settings.training, fabric=fabric, reporter=reporter)
    model.to("cpu").eval()
    if model.noise is not None and model.noise.support is not None:
        model.noise.support.fetch = None  # the fitted model must not keep the training data in memory
    return Fitted(model, history, run_health(model, rows, settings, history))


def run_health(
    model: ContrastiveModel, rows: Rows, settings: Settings, history: list[Record], *, processes: int = 1
) -> list[HealthFlag]:
    """Return the health flags of a trained model, from its last epoch. ``processes`` is the number that trained it."""
    batch_size = min(settings.training.batch_size, len(rows) // processes)
    return model_health(model, rows, contrast=history[-1].metrics["contrast"], batch_size=batch_size)


def check_folder(path: Path) -> None:
    """Refuse a path that cannot become a run folder. Nothing is created."""
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file: choose another folder with --out.")
    check_writable(path, what="a run")
    if (path / "config.yaml").exists():
        raise UserError(f"{path} already holds a run: choose another --out, or continue it with --resume {path}.")
    if path.exists() and any(path.iterdir()):
        raise UserError(f"{path} is not empty and not a run folder: choose another folder with --out.")


def create_folder(path: Path, settings: Settings) -> None:
    """Create a run folder and write its configuration. A folder that is not empty is refused."""
    check_folder(path)
    for where, part in settings.parts.items():
        if part.own and ":" not in part.name:
            raise UserError(
                f"{where} is {part.name!r}, which has no import path, so a run folder cannot name it: "
                "give a class or function of a module."
            )
    text = config_text(settings)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be created ({error.strerror}): choose another folder with --out.") from None
    write_text(path / "config.yaml", text)


def config_text(settings: Settings) -> str:
    """Return ``config.yaml`` with full paths, so that files are found from any folder."""
    values = _with_full_paths(settings.model_dump())
    if not is_name(settings.data.source):
        values["data"]["source"] = str(Path(settings.data.source).expanduser().resolve())
    try:
        return yaml.safe_dump({"format": RUN_FORMAT, **values}, sort_keys=False)
    except yaml.YAMLError as error:
        raise UserError(f"the settings hold an object that a file cannot ({error}): give a name or a number.") from None


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
) -> Fitted:
    """Train in a run folder, from the start or from its newest intact checkpoint.

    The folder is created, or its configuration updated, only after the data is read and the model is built. A mistake
    in either leaves nothing behind.

    Args:
        path: the run folder, new or existing.
        settings: the settings of the run. In a run that resumes, only the number of epochs may differ from before.
        reporter: called as training proceeds.
        should_stop: called after every step; True stops the run.
        note: called before training with sentences about the data and about a damaged checkpoint.
        progress: whether long work before training shows a progress bar.
    """
    data, preparation = open_for_training(settings.data.source, settings.data, progress=progress)
    fabric = make_fabric(settings.training, together=True)
    fabric.launch()
    for sentence in data.notes if fabric.is_global_zero else ():
        note(sentence)
    standardizer = _standardizer_of(path, settings, data.train.x)
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    record = _describe_data(settings, data, preparation)
    del data  # rows in memory are a copy, so the original can be freed
    begun = (path / "checkpoints").is_dir() and any((path / "checkpoints").iterdir())
    model = seeded_model(settings, standardizer, rows, pretrained=not begun, progress=progress)

    def settle() -> tuple[Path | None, str | None]:
        _settle_folder(path, settings, record, standardizer)
        return find_checkpoint(path / "checkpoints")

    checkpoint, complaint = on_first(fabric, settle)
    if complaint and fabric.is_global_zero:
        note(complaint)
    log = RunLog(path, reporter) if fabric.is_global_zero else None
    try:
        history = train(
            model,
            rows,
            settings.training,
            fabric=fabric,
            reporter=log or Quiet(),
            checkpoints=path / "checkpoints",
            resume_from=checkpoint,
            should_stop=should_stop,
        )
    finally:
        if log is not None:
            log.close()
    if fabric.is_global_zero:
        _write_weights(path, model)
    flags = run_health(model, rows, settings, history, processes=fabric.world_size)
    return Fitted(model, history, flags)


def _standardizer_of(path: Path, settings: Settings, x: Samples) -> Standardizer:
    """Return the stored units of a run that resumes, or learn the units in a pass over all samples."""
    try:
        standardizer = read_standardizer(path / "standardizer.safetensors")
        if standardizer.fits(tuple(x.shape[1:])):
            return standardizer
    except UserError:  # absent or damaged
        pass
    return build_standardizer(settings, x)


def _describe_data(settings: Settings, data: Dataset, preparation: Preparation) -> dict[str, Any]:
    """Return the record of the data: the rows that were trained on, and how to read later data in the same way."""
    return {
        "source": settings.data.source,
        "rows": len(data.train),
        "shape": list(data.shape),
        "fingerprint": fingerprint_parts(data),
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "class_names": None if data.class_names is None else list(data.class_names),
        "notes": list(data.notes),
        "preparation": preparation.to_json(),
    }


def _settle_folder(path: Path, settings: Settings, record: dict[str, Any], standardizer: Standardizer) -> None:
    """Write the configuration and the record of the data. For a run that resumes, check that the data is the same."""
    if not (path / "config.yaml").exists():
        create_folder(path, settings)
    (path / "checkpoints").mkdir(exist_ok=True)
    file = path / "data.json"
    if file.exists():
        before = read_json(file)
        if not isinstance(before, dict) or before.get("fingerprint") != record["fingerprint"]:
            raise UserError(_changed(path, settings, before, record))
    else:
        write_json(file, record)
        write_json(path / "environment.json", describe_environment())
    write_tensors(path / "standardizer.safetensors", standardizer_tensors(standardizer))
    if _epochs(path) != settings.training.epochs:
        write_text(path / "config.yaml", config_text(settings))


def _epochs(path: Path) -> object:
    """Return the number of epochs in ``config.yaml``. Nothing else in it is read: the settings are already known."""
    training = read_yaml(path / "config.yaml").get("training")
    return training.get("epochs") if isinstance(training, dict) else None


def check_links(path: Path) -> None:
    """Refuse a folder inside a run that is a link to elsewhere: resuming the run would write there."""
    for folder in (path / name for name in RUN_FOLDERS):
        if not real(folder).is_relative_to(real(path)):
            raise UserError(
                f"{folder} is a link to {real(folder)}, where resuming the run would write: if you trust it, pass "
                "--trust."
            )


def _changed(path: Path, settings: Settings, before: Any, now: dict[str, Any]) -> str:
    if not isinstance(before, dict) or not {"rows", "shape"} <= before.keys():
        return f"{path / 'data.json'} is damaged: start a new run."
    sizes = [f"{record['rows']} rows of {' × '.join(map(str, record['shape']))}" for record in (before, now)]
    how = "its values differ" if sizes[0] == sizes[1] else f"then {sizes[0]}, now {sizes[1]}"
    return f"{settings.data.source} has changed since {path} began ({how}): restore the data, or start a new run."


def _write_weights(path: Path, model: ContrastiveModel) -> None:
    write_tensors(path / "encoder.safetensors", model.method.encoder.state_dict())
    if model.noise is not None:
        write_tensors(path / "noise.safetensors", model.noise.state_dict())
