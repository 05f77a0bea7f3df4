"""Read a finished run from its folder, to embed new samples and look at the noise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from pinoise.data.catalogue import is_name
from pinoise.data.dataset import Dataset, Origin, Samples, fingerprint_parts
from pinoise.data.layout import undo_image_layout
from pinoise.data.preparation import Preparation, preparation_from_json
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import expanded
from pinoise.modes import own_modes
from pinoise.networks import Embedding, load_weights, read_tensors
from pinoise.noise import PiNoise
from pinoise.randomness import Randomness
from pinoise.training.build import build_encoder, check_size, restore_embedding, restore_noise, seeded_model
from pinoise.training.checkpoint import Expected, find_checkpoint, read_checkpoint
from pinoise.training.config import Settings
from pinoise.training.folder import read_config, run_identity
from pinoise.training.model import ContrastiveModel
from pinoise.training.record import read_record
from pinoise.training.units import read_standardizer


@dataclass(frozen=True)
class Run:
    """The content of a run folder after training."""

    path: Path
    settings: Settings
    standardizer: Standardizer
    embedding: Embedding
    noise: PiNoise | None
    preparation: Preparation
    fingerprint: str  # of the run's own data
    feature_names: tuple[str, ...] | None  # of the features that the encoder sees, where the data had names
    _own: list[Dataset] = field(init=False, default_factory=list, repr=False, compare=False)  # the data once it is open

    def was_trained_on(self, source: str) -> bool:
        """Whether ``source`` is the data that the run was trained on."""
        own = self.settings.data.source
        if is_name(source) or is_name(own):
            return source == own
        return expanded(source).resolve() == Path(own)  # a run stores the full path

    def own_data(self, *, progress: bool = False) -> Dataset:
        """Return the run's own data: the rows that it was trained on, and the test rows that it has not seen.

        The data is read, and compared with what the run was trained on, once. Data that has changed is refused.
        """
        if not self._own:
            data, _ = open_for_training(self.settings.data.source, self.settings.data, progress=progress)
            if fingerprint_parts(data) != self.fingerprint:
                raise UserError(
                    f"{self.settings.data.source} has changed since {self.path} began, so its training rows are not "
                    "known: restore the data, or start a new run."
                )
            self._own.append(data)
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

    def read(self, source: str, *, label: str | None = None, labelled: bool = True, progress: bool = False) -> Dataset:
        """Read a file, a folder, or a data set of the catalogue, exactly as the training data was read.

        Folders of images and arrays may have labels that training did not have.

        Args:
            source: a file, a folder or a name.
            label: the column of the labels, for a run whose training file had none.
            labelled: whether to read labels at all.
            progress: whether downloads and the decoding of images show a progress bar.
        """
        return self.preparation.read(
            source,
            label=label,
            labelled=labelled,
            own_classes=True,
            cache=self.settings.data.cache,
            progress=progress,
        )

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
    """Read a finished run from its folder.

    Args:
        path: the folder.
        trust: whether to import the parts that its ``config.yaml`` names by an import path, and so run their code, and
            to keep decoded images in the folder that it names.
    """
    path = Path(path)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: give the folder of a finished run.")
    settings = read_config(path, trust=trust)
    standardizer = read_standardizer(path / "standardizer.safetensors")
    with Randomness(0).feeding():  # the weights of the files replace what is drawn
        check_size(settings, standardizer.shape)
        encoder = build_encoder(settings, standardizer.shape)
        _load_into(encoder, path / "encoder.safetensors")
        path_of_units = path / "embedding.safetensors"
        units = read_tensors(path_of_units)
        with _fitting(path_of_units):
            embedding = restore_embedding(encoder, settings, standardizer, units)
        noise = None
        if settings.is_learned:
            noise = _load_noise(settings, standardizer, encoder, path / "noise.safetensors")
    record = read_record(path / "data.json")
    return Run(
        path=path,
        settings=settings,
        standardizer=standardizer,
        embedding=embedding,
        noise=noise,
        preparation=preparation_from_json(record.preparation),
        fingerprint=record.fingerprint,
        feature_names=None if record.feature_names is None else tuple(record.feature_names),
    )


@own_modes()
def load_model(run: Run, rows: Rows) -> ContrastiveModel:
    """Return the whole model at the end of a run, from its last checkpoint.

    Args:
        run: a finished run.
        rows: its training rows, standardised.
    """
    model = seeded_model(run.settings, run.standardizer, rows, pretrained=False)
    identity = run_identity(run.settings, run.fingerprint)
    path, _ = find_checkpoint(run.path / "checkpoints", Expected(model, identity=identity))
    if path is None:
        raise UserError(f"{run.path / 'checkpoints'} is empty: measuring a run's views needs its last checkpoint.")
    model.load_state_dict(read_checkpoint(path).model)
    return model.eval()


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
