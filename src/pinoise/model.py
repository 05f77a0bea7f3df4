"""The one fitted thing: how samples are read and standardised, their embedding, the noise, and how training went.

A run folder holds one. One that was stopped or killed has no files of weights yet: its last intact checkpoint counts.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from pinoise.data.dataset import Dataset, Origin, Samples
from pinoise.data.layout import undo_image_layout
from pinoise.data.options import AS_TRAINED, LaterOptions
from pinoise.data.preparation import ArrayPreparation, Preparation, preparation_from_json
from pinoise.data.rows import Rows, make_rows
from pinoise.data.source import is_name
from pinoise.data.standardizer import Standardizer
from pinoise.data.target import Target, read_target
from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.evaluation.few_labels import FewLabelClassifier
from pinoise.evaluation.precision import precise_embedding
from pinoise.evaluation.student import embedded_parts
from pinoise.files import expanded, write_json
from pinoise.modes import own_modes
from pinoise.networks import Embedding, digest, write_tensors
from pinoise.noise import PiNoise
from pinoise.training.build.model import read_standardizer, standardizer_tensors
from pinoise.training.callbacks import Record
from pinoise.training.config import Settings
from pinoise.training.folder import (
    CLASSIFIER_FILE,
    ENCODER_FILE,
    IN_MEMORY,
    STANDARDIZER_FILE,
    DataRecord,
    create_folder,
    describe_environment,
    new_folder,
    read_config,
    read_record,
    write_weights,
)
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.restore import from_checkpoint, from_files, open_own, stored_model
from pinoise.training.running import write_metrics

if TYPE_CHECKING:
    from pinoise.export import What

Array = npt.NDArray[Any]


class UnfinishedRunWarning(UserWarning):
    """A run that is used was stopped before its last epoch."""


@dataclass(frozen=True, eq=False)
class Model:
    """What was fitted, in a run folder or in memory.

    >>> import tempfile
    >>> from pinoise import PiNDA, load_run
    >>> x = np.random.default_rng(0).normal(size=(40, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PiNDA(2, hidden=4, epochs=1, batch_size=20).fit(x).save(folder)
    ...     model = load_run(folder)
    >>> model.embed(x).shape, model.augment(x, seed=0).shape, model.column_names
    ((40, 5), (40, 3), ('x0', 'x1', 'x2', 'pinda0', 'pinda1'))
    """

    settings: Settings
    record: DataRecord  # of its own data
    preparation: Preparation
    standardizer: Standardizer
    embedding: Embedding
    noise: PiNoise | None
    history: list[Record]  # the epochs behind these weights
    flags: list[str] = field(default_factory=list)  # the names of what went wrong in training
    path: Path = Path(IN_MEMORY)  # its folder
    finished: bool = True
    _own: list[Dataset] = field(init=False, default_factory=list, repr=False)  # its data once it is open

    @classmethod
    @own_modes()
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read the folder of a run, or one that ``save`` wrote.

        A run that is not finished is read as it stands, and a warning says so. Its state is its last intact checkpoint,
        and to read it takes the run's own data.

        Args:
            path: the folder.
            trust: whether to import the parts that its ``config.yaml`` names by an import path, and so run their code.
        """
        path = Path(path)
        if not path.is_dir():
            raise UserError(f"{path} is not a folder: give the folder of a run.")
        settings = read_config(path, trust=trust)
        record = read_record(path / "data.json")
        standardizer = read_standardizer(path / STANDARDIZER_FILE)
        own = [] if (path / ENCODER_FILE).exists() else [open_own(path, settings, record)]
        if own:
            restored = from_checkpoint(path, settings, standardizer, record, own[0])
        else:
            restored = from_files(path, settings, standardizer)
        model = cls(settings, record, preparation_from_json(record.preparation), standardizer, path=path, **restored)
        model._own.extend(own)
        if not model.finished:
            trusting = " --trust" if settings.needs_trust else ""
            warnings.warn(
                f"{path} is unfinished, at epoch {model.epoch} of {settings.training.epochs}, and is used as it stands;"
                f" go on with: pinoise train --resume {shlex.quote(str(path))}{trusting}",
                UnfinishedRunWarning,
                stacklevel=3,
            )
        return model

    @own_modes()
    def save(self, path: str | Path, classifier: FewLabelClassifier | None = None) -> None:
        """Write the files of a finished run, all or none. A model that was saved there before is replaced.

        Your own classes and functions are written as their import paths. Objects have none and are refused.

        Args:
            path: the folder.
            classifier: what ``predict`` then votes by.
        """
        with new_folder(Path(path)) as folder:
            create_folder(folder, self.settings)
            write_json(folder / "data.json", self.record.model_dump(mode="json"))
            write_json(folder / "environment.json", describe_environment())
            write_tensors(folder / STANDARDIZER_FILE, standardizer_tensors(self.standardizer))
            write_metrics(folder / "metrics.csv", self.history)
            if classifier is not None:
                classifier.write(folder / CLASSIFIER_FILE, weights=self.weights)
            write_weights(folder, self.embedding, self.noise, flags=self.flags)

    def embed(self, x: Samples) -> Any:
        """Return the embedding of samples without noise, in their precision.

        A model of sparse rows with more than 10,000 features returns the joined embedding as a SciPy ``csr_array``.
        """
        preparation = self.preparation
        of_sparse = isinstance(preparation, ArrayPreparation) and preparation.encoding.sparse
        return precise_embedding(self.embedding, self.standardizer, x, of_sparse=of_sparse)

    @own_modes()
    def augment(self, x: Samples, *, seed: int) -> Array:
        """Return a noisy copy of samples, x + ε with ε drawn from the learned noise, in the units of x."""
        drawn, noise = torch.Generator().manual_seed(seed), self.learned_noise
        noisy = self._each(lambda batch: batch + noise.sample(batch, generator=drawn), x)
        norms = self.standardizer.norms(x) if self.standardizer.unit_rows else None
        return self.standardizer.undo(noisy, norms)

    @own_modes()
    def noise_scale(self, x: Samples, *, relative: bool = True) -> Array:
        """Return σ(x) of samples, in standard deviations of each feature, or else in the units of x."""
        sigma = self._each(self.learned_noise.relative_scale if relative else self.learned_noise.scale, x)
        in_units = sigma if relative else sigma * self.standardizer.units(x)
        return undo_image_layout(in_units, self.standardizer.layout)

    def _each(self, of: Callable[[Tensor], Tensor], x: Samples) -> Array:
        """Return something of every standardised sample that has its shape."""
        rows = make_rows(x, self.standardizer)
        return embed(lambda batch: of(batch).flatten(1), rows).reshape(-1, *self.standardizer.shape)

    def predict(self, x: Samples) -> Array:
        """Return p(class) of samples, (n, K), in the order of ``classifier.classes``."""
        self._check_shape(x, "the data")  # which a damaged record reads otherwise
        return self.classifier.probabilities(self.features(x))

    def features(self, x: Samples) -> Array:
        """Return the embedding of samples as a classifier takes it: dense, in double precision."""
        z = self.embed(x)
        return np.asarray(z.toarray() if isinstance(z, sp.csr_array) else z, dtype=np.float64)

    def export(self, path: str | Path, *, what: What = "embedding") -> dict[str, Any]:
        """Write the embedding or the noise as one ONNX file, as ``pinoise.export.write_onnx`` does."""
        from pinoise.export import write_onnx

        return write_onnx(Path(path), self, what=what)

    @property
    def learned_noise(self) -> PiNoise:
        """The noise, which must be there."""
        if self.noise is None:
            raise UserError(f"{self.path} has no learned noise: only what is trained with noise 'pi' has it.")
        return self.noise

    @property
    def epoch(self) -> int:
        """The whole epochs behind these weights."""
        return self.history[-1].epoch if self.history else self.finished * self.settings.training.epochs

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
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features that the encoder sees, where the data had names."""
        return None if self.record.feature_names is None else tuple(self.record.feature_names)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns of the embedding."""
        names = self.feature_names or tuple(f"x{i}" for i in range(self.standardizer.mean.size))
        return self.embedding.column_names(names)

    @property
    def raw_columns(self) -> int:
        """How many columns of the embedding, the first ones, are the sample itself."""
        return self.standardizer.mean.size if self.embedding.name == "joined" else 0

    @cached_property
    def classifier(self) -> FewLabelClassifier:
        """The stored classifier, or that of an unfinished run with a target, which is fitted now and not stored."""
        data = self.settings.data
        if not self.finished and data.target is not None:
            return self.fit_classifier(read_target(data.source, data.target, na=data.na), store=False)
        if not (path := self.path / CLASSIFIER_FILE).exists():
            raise UserError(f"{self.path} has no classifier: train with --target COLUMN.")
        return FewLabelClassifier.read(path, raw=self.raw_columns, weights=self.weights)

    def fit_classifier(self, target: Target, *, store: bool = True) -> FewLabelClassifier:
        """Fit a classifier on the labelled rows of a run's own data, and store it in its folder, if ``store``."""
        part = self.own_data().train
        inside = target.within(part)
        present, numbers = np.unique(inside.numbers, return_inverse=True)
        if len(present) < 2:
            raise UserError(f"the rows of {self.path} have labels of {len(present)} class, but a classifier needs two.")
        Z, unlabelled = embedded_parts(lambda rows: self.features(part.take(rows).x), inside.rows, total=len(part))
        classes, seed = [target.labels.names[number] for number in present], self.settings.training.seed
        classifier = FewLabelClassifier.fit(Z, numbers, unlabelled, classes=classes, raw=self.raw_columns, seed=seed)
        if store:
            classifier.write(self.path / CLASSIFIER_FILE, weights=self.weights)
        return classifier

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
        said = self.record.notes if source is None or self.was_trained_on(source) else ()
        return tuple(sentence for sentence in notes if sentence not in said)

    def own_data(self, *, progress: bool = False) -> Dataset:
        """Return the run's own data: the rows that it was trained on, and the test rows that it has not seen.

        The data is read, and compared with what the run was trained on, once. Data that has changed is refused.
        """
        if not self._own:
            self._own.append(open_own(self.path, self.settings, self.record, progress=progress))
        return self._own[0]

    def read(
        self, source: object, later: LaterOptions = AS_TRAINED, *, labelled: bool = True, progress: bool = False
    ) -> Dataset:
        """Read a file, a folder, a data set of the catalogue or samples in memory, as the training data was read.

        Folders of images and arrays may have labels that training did not have.

        Args:
            source: a file, a folder, a name or samples.
            later: what differs from training, such as the column of the labels.
            labelled: whether to read labels at all.
            progress: whether downloads and the decoding of images show a progress bar.
        """
        if later.stream == "auto":
            later = replace(later, stream=self.settings.data.stream)
        return self.preparation.read(source, later, labelled=labelled, progress=progress)

    def rows(self, x: Samples, *, where: str, origin: Origin | None = None) -> Rows:
        """Return samples standardised as in training. Refuse other shapes. ``origin`` is as in ``make_rows``."""
        self._check_shape(x, where)
        return make_rows(x, self.standardizer, origin=origin)

    def _check_shape(self, x: Samples, where: str) -> None:
        if (given := tuple(x.shape[1:])) != (own := self.standardizer.raw_shape):
            raise UserError(f"{where} has samples of shape {given}: the run {self.path} was trained on {own}.")


load_run = Model.load


@own_modes()
def contrastive_model(run: Model, rows: Rows) -> ContrastiveModel:
    """Return all that a run trained, as its last checkpoint has it.

    Args:
        run: a run.
        rows: its training rows, standardised.
    """
    return stored_model(run.path, run.settings, run.standardizer, rows, run.record)[0]
