"""Read a run from its folder, to embed new samples and look at the noise.

A finished run has its weights in files. Of one that was stopped or killed, the last intact checkpoint counts.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from pinoise.data.dataset import Dataset, Origin, Samples, fingerprint_parts
from pinoise.data.layout import undo_image_layout
from pinoise.data.named import is_name
from pinoise.data.options import AS_TRAINED, LaterOptions
from pinoise.data.preparation import Preparation, preparation_from_json
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import expanded
from pinoise.modes import Randomness, own_modes
from pinoise.networks import Embedding, digest, load_weights, read_tensors
from pinoise.noise import PiNoise
from pinoise.training.build import (
    build_embedding,
    build_encoder,
    check_size,
    restore_embedding,
    restore_noise,
    seeded_model,
)
from pinoise.training.build.model import read_standardizer
from pinoise.training.callbacks import Record
from pinoise.training.checkpoint import Expected, Stored, find_checkpoint
from pinoise.training.config import Settings
from pinoise.training.folder import (
    ENCODER_FILE,
    NOISE_FILE,
    UNITS_FILE,
    DataRecord,
    read_config,
    read_record,
    run_identity,
)
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.running import read_metrics


class UnfinishedRunWarning(UserWarning):
    """A run that is used was stopped before its last epoch."""


@dataclass(frozen=True)
class Run:
    """The content of a run folder, after training or where it was stopped."""

    path: Path
    settings: Settings
    standardizer: Standardizer
    embedding: Embedding
    noise: PiNoise | None
    preparation: Preparation
    fingerprint: str  # of the run's own data
    notes: tuple[str, ...]  # on the run's own data, which training said
    feature_names: tuple[str, ...] | None  # of the features that the encoder sees, where the data had names
    epoch: int  # the whole epochs behind these weights
    finished: bool
    _own: list[Dataset] = field(init=False, default_factory=list, repr=False, compare=False)  # the data once it is open

    @cached_property
    def weights(self) -> str:
        """The checksum of the embedding, which tells one state of training from another."""
        return digest(self.embedding.state_dict())

    @property
    def state(self) -> dict[str, Any]:
        """What the run is at, as plain values to store beside what is measured of it: see ``is_current``."""
        return {"epoch": self.epoch, "epochs": self.settings.training.epochs, "weights": self.weights}

    def is_current(self, measured: object) -> bool:
        """Whether something that was measured, such as ``evaluation.json``, is of the run as it is now.

        Args:
            measured: plain values with the ``state`` of the run at that time.
        """
        state = measured.get("state") if isinstance(measured, Mapping) else None
        return isinstance(state, Mapping) and state.get("weights") == self.weights

    @property
    def history(self) -> list[Record]:
        """The epochs behind these weights. A run that was killed may have written of later ones."""
        return [record for record in read_metrics(self.path / "metrics.csv") if record.epoch <= self.epoch]

    def was_trained_on(self, source: str) -> bool:
        """Whether ``source`` is the data that the run was trained on."""
        own = self.settings.data.source
        if is_name(source) or is_name(own):
            return source == own
        return expanded(source).resolve() == Path(own)  # a run stores the full path

    def new_notes(self, notes: Iterable[str], source: str | None = None) -> tuple[str, ...]:
        """Return notes on data, without those on the run's own that training has said.

        Args:
            notes: sentences.
            source: the data; None is the run's own.
        """
        said = self.notes if source is None or self.was_trained_on(source) else ()
        return tuple(sentence for sentence in notes if sentence not in said)

    def own_data(self, *, progress: bool = False) -> Dataset:
        """Return the run's own data: the rows that it was trained on, and the test rows that it has not seen.

        The data is read, and compared with what the run was trained on, once. Data that has changed is refused.
        """
        if not self._own:
            self._own.append(_open_own(self.path, self.settings, self.fingerprint, progress=progress))
        return self._own[0]

    def change_of(self, source: str, *, progress: bool = False) -> str | None:
        """Return the sentence on a source that the run was trained on and that has changed since, None for any other.

        It costs one more pass over the run's own data, which is read as for training.
        """
        if not self.was_trained_on(source):
            return None
        try:
            self.own_data(progress=progress)
        except UserError:
            return f"{source} has changed since {self.path} was trained: its rows are not the training rows"
        finally:
            self._own.clear()
        return None

    def read(
        self, source: str, later: LaterOptions = AS_TRAINED, *, labelled: bool = True, progress: bool = False
    ) -> Dataset:
        """Read a file, a folder, or a data set of the catalogue, as the training data was read.

        Folders of images and arrays may have labels that training did not have.

        Args:
            source: a file, a folder or a name.
            later: what differs from training, such as the column of the labels.
            labelled: whether to read labels at all.
            progress: whether downloads and the decoding of images show a progress bar.
        """
        if later.stream == "auto":
            later = replace(later, stream=self.settings.data.stream)
        return self.preparation.read(source, later, labelled=labelled, own_classes=True, progress=progress)

    def rows(self, x: Samples, *, where: str, origin: Origin | None = None) -> Rows:
        """Return samples standardised as in training. Refuse other shapes. ``origin`` is as in ``make_rows``."""
        if not self.standardizer.fits(tuple(x.shape[1:])):
            raise UserError(
                f"{where} has samples of shape {tuple(x.shape[1:])}: the run {self.path} was trained on "
                f"{self._sample_shape}."
            )
        return make_rows(x, self.standardizer, origin=origin)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of the embedding."""
        names = self.feature_names or tuple(f"x{i}" for i in range(self.standardizer.mean.size))
        return self.embedding.column_names(names)

    @property
    def _sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample in the file."""
        return undo_image_layout(np.empty((1, *self.standardizer.shape)), self.standardizer.layout).shape[1:]


@own_modes()
def load_run(path: str | Path, *, trust: bool = False) -> Run:
    """Read a run from its folder. One that is not finished is read as it stands, and a warning says so.

    The state of an unfinished run is its last intact checkpoint. To read it takes the run's own data.

    Args:
        path: the folder.
        trust: whether to import the parts that its ``config.yaml`` names by an import path, and so run their code.
    """
    path = Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: give the folder of a run.")
    settings = read_config(path, trust=trust)
    standardizer = read_standardizer(path / "standardizer.safetensors")
    record = read_record(path / "data.json")
    restore = _from_files if (path / ENCODER_FILE).exists() else _from_checkpoint
    found = restore(path, settings, standardizer, record)
    run = Run(
        path=path,
        settings=settings,
        standardizer=standardizer,
        embedding=found.embedding,
        noise=found.noise,
        preparation=preparation_from_json(record.preparation),
        fingerprint=record.fingerprint,
        notes=tuple(record.notes),
        feature_names=None if record.feature_names is None else tuple(record.feature_names),
        epoch=found.epoch,
        finished=found.finished,
    )
    run._own.extend(found.data)
    if not found.finished:
        trusting = " --trust" if settings.needs_trust else ""
        warnings.warn(
            f"{path} is unfinished, at epoch {run.epoch} of {settings.training.epochs}, and is used as it stands; "
            f"go on with: pinoise train --resume {shlex.quote(str(path))}{trusting}",
            UnfinishedRunWarning,
            stacklevel=3,
        )
    return run


class _Restored(NamedTuple):
    """What training has made of a run."""

    embedding: Embedding
    noise: PiNoise | None
    epoch: int
    finished: bool
    data: tuple[Dataset, ...] = ()  # the run's own, if it had to be read


def _from_files(path: Path, settings: Settings, standardizer: Standardizer, record: DataRecord) -> _Restored:
    """Restore a finished run from its files of weights."""
    with Randomness(0).lent():  # the weights of the files replace what is drawn
        check_size(settings, standardizer.shape)
        encoder = build_encoder(settings, standardizer.shape)
        _load_into(encoder, path / ENCODER_FILE)
        units = read_tensors(path / UNITS_FILE)
        with _fitting(path / UNITS_FILE):
            embedding = restore_embedding(encoder, settings, standardizer, units)
        noise = None
        if settings.is_learned:
            noise = _load_noise(settings, standardizer, encoder, path / NOISE_FILE)
    history = read_metrics(path / "metrics.csv")
    return _Restored(embedding, noise, history[-1].epoch if history else settings.training.epochs, finished=True)


def _from_checkpoint(path: Path, settings: Settings, standardizer: Standardizer, record: DataRecord) -> _Restored:
    """Restore a run without files of weights: it was stopped or killed, or it is still being trained."""
    data = _open_own(path, settings, record.fingerprint)
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    model, stored = _stored_model(path, settings, standardizer, rows, record.fingerprint)
    embedding = build_embedding(model.method.encoder, settings.embedding, standardizer, rows)
    epoch = len(stored.history)
    return _Restored(embedding, model.noise, epoch, finished=epoch >= settings.training.epochs, data=(data,))


def _open_own(path: Path, settings: Settings, fingerprint: str, *, progress: bool = False) -> Dataset:
    """Read the data that a run was trained on. Data that has changed since is refused."""
    data, _ = open_for_training(settings.data.source, settings.data, progress=progress)
    if fingerprint_parts(data) != fingerprint:
        raise UserError(
            f"{settings.data.source} has changed since {path} began, so its training rows are not known: restore the "
            "data, or start a new run."
        )
    return data


@own_modes()
def load_model(run: Run, rows: Rows) -> ContrastiveModel:
    """Return the whole model of a run, from its last checkpoint.

    Args:
        run: a run.
        rows: its training rows, standardised.
    """
    return _stored_model(run.path, run.settings, run.standardizer, rows, run.fingerprint)[0]


def _stored_model(
    path: Path, settings: Settings, standardizer: Standardizer, rows: Rows, fingerprint: str
) -> tuple[ContrastiveModel, Stored]:
    """Return the model of a run's last intact checkpoint, and the checkpoint."""
    model = seeded_model(settings, standardizer, rows, pretrained=False)
    expected = Expected(model, identity=run_identity(settings, fingerprint))
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


def _load_noise(settings: Settings, standardizer: Standardizer, encoder: torch.nn.Module, path: Path) -> PiNoise:
    tensors = read_tensors(path)
    with _fitting(path):
        return restore_noise(settings, standardizer, encoder, tensors)


def _load_into(module: torch.nn.Module, path: Path) -> None:
    tensors = read_tensors(path)
    with _fitting(path):
        load_weights(module, tensors, where=path)


@contextmanager
def _fitting(path: Path) -> Iterator[None]:
    """Turn the error for stored tensors that do not fit into one sentence."""
    try:
        yield
    except (RuntimeError, UserError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"{path} does not fit the configuration beside it: the run folder is damaged, or a part of your own has "
            f"changed ({why})."
        ) from None
