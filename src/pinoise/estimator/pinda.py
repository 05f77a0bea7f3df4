"""``PiNDA`` as scikit-learn has its estimators: the constructor only stores, and what ``fit`` learns ends in _."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
from torch import Tensor

from pinoise.choices import ENCODER, GENERATOR, METHOD, OBJECTIVE
from pinoise.data.dataset import Samples, Spans, fingerprint
from pinoise.data.formats.memory import InMemory
from pinoise.data.layout import have_colours, to_image_layout, undo_image_layout
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.data.table.frames import collected
from pinoise.estimator.checking import Trained, checked_numbers, interruption, learned_preparation, state_before
from pinoise.estimator.parameters import columns_from, seed_of_state, settings_from
from pinoise.estimator.stored import read_estimator, write_estimator
from pinoise.estimator.transforming import as_given, dense_embedding, in_precision, sparse_embedding, stays_sparse
from pinoise.evaluation import embed
from pinoise.export import ExportedModel, What, table_encoding, write_onnx
from pinoise.modes import own_modes
from pinoise.networks import Embedding
from pinoise.noise import PiNoise
from pinoise.training.automatic import with_best_noise
from pinoise.training.build import (
    build_standardizer,
)
from pinoise.training.callbacks import checked_callbacks, shown
from pinoise.training.config import Settings, complete
from pinoise.training.metrics import METRICS
from pinoise.training.run import fit

_SETTINGS = Settings()  # which the defaults are those of


class HealthWarning(UserWarning):
    """Training ended, but with a named sign of trouble."""


# scikit-learn ships no types, so its classes are Any to the type checker.
class PiNDA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn an embedding by contrast, with noise p_ψ(ε|x) that is learned with it (π-noise driven data augmentation).

    Samples are standardised inside, so raw tables can be given; of sparse input only batches, and the rows among which
    neighbours are searched, are made dense. With ``image_shape``, samples are images. A data frame with text,
    categories, dates or missing values is read as the command reads such a table (docs/data.md): categories become
    features, dates days and cycles, gaps are filled; ``notes_`` says what was done.

    The encoder, the method, the objective, the generator and the augmentations are names; or dicts with a ``"name"``
    and options, as in ``{"name": "resnet18", "width": 16}``; or your own: an import path ``"package.module:name"``, or
    the object itself. ``docs/own_parts.md`` shows one of each.

    Parameters
    ----------
    n_components : int
        Width of the learned part of the embedding, for an encoder with an option ``out_features``. The joined embedding
        has the features beside it: ``n_components=2`` gives 13 + 2 = 15 columns for the 13 features of wine, and 2 with
        ``embedding="learned"``.
    embedding : {"auto", "joined", "learned"}
        What ``transform`` returns: the learned part beside the standardised sample, which loses nothing of it, or the
        learned part alone. ``"auto"`` is ``"joined"`` but for images. Of sparse rows with more than 10,000 features the
        joined one is sparse, too: see ``transform``.
    encoder : str, dict or object
        "mlp", or for images "resnet18", "resnet50" or "vit". ``"auto"`` is ``"resnet18"`` for images, else ``"mlp"``.
        Your own is a torch module with the integer attribute ``out_features``, or what makes one from the shape of a
        sample.
    image_shape : tuple of int or None
        Makes samples images of this shape, (height, width) or (height, width, channels), whether X holds them or rows
        of their pixels. Bytes stay bytes in memory. For images, ``encoder``, ``augmentations``, ``neighbours``,
        ``pairing``, ``covariance`` and ``amplitude`` have other defaults, which stand at each: they give small
        differences between images on top of augmented ones, and of the image itself.
    hidden : int or None
        Width of the hidden layers of the encoder and of the noise generator, where they have such; None is their own.
    method : str, dict or object
        The contrastive method: "simclr", "simcl", "clae", "moco", "memorybank", "byol", "simsiam" or "dino". Your own
        is a class derived from ``pinoise.methods.Method``, or a function from the projections of two views to a loss
        per sample.
    objective : str, dict or object
        What the noise optimises. ``"supported"`` moves samples along the data, with noise of fixed entropy whose shape
        is learned; ``"paper"`` lets encoder and noise both minimise the contrastive loss; ``"fixed"`` keeps the noise
        as it starts; ``"adversarial"`` lets noise of fixed entropy maximise the loss; ``"information"``
        maximises the mutual information of noise and task. Your own is a class derived from
        ``pinoise.training.objectives.Objective``, or a function from a ``Look`` to a scalar.
    noise : {"pi", "auto"}
        ``"auto"`` fits four kinds of noise for a quarter of the epochs each, and goes on with the one whose clusters
        lie farthest apart; it takes no labels and twice the time. ``"pi"`` is the noise that the other parameters
        describe.
    distribution : {"gaussian", "uniform"}
        The family of the noise.
    mean : {"zero", "learned"}
        Whether the noise has a mean of its own.
    covariance : {"auto", "diagonal", "differences", "low-rank", "mixed"}
        How the noise of different features goes together. ``"diagonal"`` is independent noise; ``"differences"`` moves
        a sample by differences between other samples and their neighbours; ``"low-rank"`` is Gaussian noise with about
        their covariance; ``"mixed"`` gives half of the samples a step to a neighbour with independent noise, and the
        other half differences; with ``neighbours=0`` the first half gets the independent noise alone. ``"auto"`` is
        ``"mixed"`` for Gaussian noise of objective "supported" on vectors, ``"differences"`` where such noise composes
        with augmentations of images, and ``"diagonal"`` elsewhere.
    amplitude : float or None
        The size of the noise at the start, as a multiple of how much neighbours differ, for noise that has neighbours.
        None is 1, or 2 for correlated noise without a step to a neighbour, or 0.5 where ``covariance`` follows from
        augmentations of images.
    generator : str, dict or object
        What is behind the noise: "global", one number per feature; "mlp", the paper's network; "shared", a light head
        on the encoder's own features; or for images "resnet18", "resnet50" or "unet". ``"auto"`` is
        ``"global"`` for objective "supported" and ``"mlp"`` for others; for images ``"shared"`` and ``"resnet18"``.
        Your own is a torch module from (m, *shape) to (m, outputs, *shape), or what makes one from the shape and the
        outputs.
    pairing : {"auto", "identity-noise", "noise-noise", "sampled", "compose"}
        How two views of a sample are made. ``"auto"`` is ``"noise-noise"`` for noise of objective "supported" alone,
        ``"identity-noise"`` for that of others, ``"sampled"`` beside augmentations, and ``"compose"`` beside those of
        images for objective "supported".
    augmentations : sequence of str, dict or object, or None
        Predefined augmentations beside the noise: "gaussian", "scarf", "vime", "dacl", "modals", "neighbours",
        "identity", and for images "simclr", "byol" and "crop". None is ``["simclr", "identity"]`` for images, with
        "crop" in place of "simclr" where there are no colours to change, and ``[]`` for vectors. Your own is a
        ``pinoise.views.View``, a torch module, or a function from a batch of samples to a batch of the same shape.
    neighbours : int or None
        How many nearest neighbours a sample may be moved to; 0 for none. None is 10 for objective "supported", but 0
        beside augmentations of images, and 0 for others. ``noise="auto"`` chooses whether samples move.
    penalty : float or None
        λ of the paper's penalty λ / mean‖ε‖, for objective "paper".
    initial_scale : float or None
        The noise's standard deviation at the start, in standard deviations of each feature. None is how much
        neighbours differ in each feature, for noise that has neighbours or is correlated as they are, and 1 for other
        noise.
    scaling : {"auto", "features", "compressed", "global", "rows"}
        How samples are standardised: every feature by its own deviation; the same after arcsinh, a logarithm that
        brings heavy tails nearer; all by one deviation; or rows of length 1 by one. ``"auto"`` is ``"rows"`` for data
        that is mostly zeros, ``"global"`` for zeros and ones, and ``"compressed"`` where half of the features have
        heavy tails (a kurtosis above 50).
    text : sequence of str or None
        Columns of a data frame with free text, whose frequent words become TF-IDF features.
    categorical : sequence of str or None
        Columns of a data frame whose numbers are names.
    drop : sequence of str or None
        Columns of a data frame to leave out.
    keep : sequence of str or None
        Columns of a data frame to keep although their values name the rows.
    na : sequence of str or None
        Values of cells of a data frame that mean "missing", such as "?".
    missing : {"median", "mean", "zero", "error"}
        What fills the missing numbers of a data frame, or NaN in an array.
    mark_missing : bool
        Whether a column of numbers with at least 1 % of them missing has a feature beside it that marks these.
    epochs : int
        How often every row is seen.
    batch_size : int
        Rows in a step. Fewer rows than this make one batch.
    learning_rate : float
        Of Adam.
    noise_learning_rate : float or None
        The generator's own learning rate; ``learning_rate`` if None, or ten times it for generator "global".
    temperature : float or None
        τ of the contrastive loss; the method's own if None. BYOL and SimSiam have none.
    device : {"auto", "cpu", "cuda", "mps"}
        What trains.
    random_state : int, RandomState instance or None
        An int makes the result of ``fit`` repeatable, and after it the sequence of copies that ``augment`` returns.
    patience : int or None
        Ends training early, without labels: after so many epochs in which the contrastive loss of held-out rows has not
        fallen. A tenth of the rows, at most 1,024, is then not trained on. None trains for all ``epochs``. The last
        state is kept, not the best; ``docs/training.md`` says what this does not promise.
    min_improvement : float
        A smaller fall of that loss does not count.
    warm_start : bool
        Whether ``fit`` on a fitted estimator goes on from its state, for ``epochs`` more, with the same features. The
        rows may be others.
    callbacks : sequence of Callback, logger or function
        Called after every epoch with its ``Record``; one that returns True ends training. A logger is any object with
        Lightning's ``log_metrics(metrics, step)``.
    verbose : int
        1 shows a progress bar on a terminal and in a notebook, and prints a line for each epoch elsewhere; 0 is quiet.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder, for standardised samples; ``embedding_`` is what ``transform`` computes with it.
    noise_ : PiNoise
        The trained noise, for standardised samples; for objective "supported" with up to 2,048 training rows, its
        ``support``, which ``save`` writes too.
    history_ : dict of lists
        One entry per epoch: ``epoch``, ``loss``, ``seconds``, ``contrast`` (the loss without what the objective adds),
        the size of the noise (``sigma_mean``, ``sigma_median``, ``participation``, ``cleanest``), and after at most
        about ten of the epochs, nan elsewhere, the embedding (``effective_rank``, ``spread``) and the information
        in the noise (``task_entropy``, ``conditional_entropy``, ``information``, ``plug_in``, with errors).
    flags_ : list of str
        The names of what went wrong; each was also a ``HealthWarning``.
    trials_ : dict
        The score of each kind of noise that ``noise="auto"`` tried, the chosen one first; empty otherwise.
    mean_, scale_ : ndarray of shape (n_features_in_,), or (channels, height, width) of images
        Of every feature in training; the scale of a constant feature is 0. Where tails are compressed, these are the
        median and a robust scale (``docs/noise.md``).
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input had them

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pinoise import PiNDA
    >>> X = load_digits().data[:300]
    >>> model = PiNDA(n_components=8, hidden=32, epochs=2, random_state=0).fit(X)
    >>> model.transform(X).shape  # 64 features and 8 learned ones
    (300, 72)
    """

    def __init__(
        self,
        n_components: int = complete(_SETTINGS).encoder.options["out_features"],
        *,
        embedding: str = _SETTINGS.embedding,
        encoder: Any = ENCODER.default,
        image_shape: tuple[int, ...] | None = None,
        hidden: int | None = None,
        method: Any = METHOD.default,
        objective: Any = OBJECTIVE.default,
        noise: str = _SETTINGS.views.noise.name,
        distribution: str = _SETTINGS.noise.distribution,
        mean: str = _SETTINGS.noise.mean,
        covariance: str = _SETTINGS.noise.covariance,
        amplitude: float | None = _SETTINGS.noise.amplitude,
        generator: Any = GENERATOR.default,
        pairing: str = _SETTINGS.views.pairing,
        augmentations: Sequence[Any] | None = None,
        neighbours: int | None = None,
        penalty: float | None = None,
        initial_scale: float | None = _SETTINGS.noise.initial_scale,
        scaling: str = _SETTINGS.data.scaling,
        text: Sequence[str] | None = None,
        categorical: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        na: Sequence[str] | None = None,
        missing: str = _SETTINGS.data.missing,
        mark_missing: bool = _SETTINGS.data.mark_missing,
        epochs: int = _SETTINGS.training.epochs,
        batch_size: int = _SETTINGS.training.batch_size,
        learning_rate: float = _SETTINGS.training.learning_rate,
        noise_learning_rate: float | None = _SETTINGS.training.noise_learning_rate,
        temperature: float | None = None,
        device: str = _SETTINGS.training.device,
        random_state: int | np.random.RandomState | None = None,
        patience: int | None = _SETTINGS.training.patience,
        min_improvement: float = _SETTINGS.training.min_improvement,
        warm_start: bool = False,
        callbacks: Sequence[Any] = (),
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.embedding = embedding
        self.encoder = encoder
        self.image_shape = image_shape
        self.hidden = hidden
        self.method = method
        self.objective = objective
        self.noise = noise
        self.distribution = distribution
        self.mean = mean
        self.covariance = covariance
        self.amplitude = amplitude
        self.generator = generator
        self.pairing = pairing
        self.augmentations = augmentations
        self.neighbours = neighbours
        self.penalty = penalty
        self.initial_scale = initial_scale
        self.scaling = scaling
        self.text = text
        self.categorical = categorical
        self.drop = drop
        self.keep = keep
        self.na = na
        self.missing = missing
        self.mark_missing = mark_missing
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.noise_learning_rate = noise_learning_rate
        self.temperature = temperature
        self.device = device
        self.random_state = random_state
        self.patience = patience
        self.min_improvement = min_improvement
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the encoder and the noise; labels are ignored.

        An interrupt, such as Ctrl-C, ends training: the model is then used as it stands, and a warning says so.
        """
        before = state_before(self)
        seed = seed_of_state(self.random_state) if before is None else before.seed
        settings = settings_from(vars(self), seed=seed)
        checked_callbacks(self.callbacks)
        x = self._checked(X, fitting=before is None)
        if self.image_shape is not None and not have_colours(x):
            settings = settings_from(vars(self), seed=seed, coloured=False)
        if before is not None:
            settings = with_best_noise(settings, before.trials)
        with own_modes(), shown(self.verbose) as reporter:
            new = before is None
            standardizer = build_standardizer(settings, x, spans=self._spans) if new else self._standardizer
            data = fingerprint(x)
            fitted = fit(
                settings,
                standardizer,
                make_rows(x, standardizer),
                reporter=reporter,
                callbacks=self.callbacks,
                earlier=None if before is None else before.goes_on(data),
                keep_interrupted=True,
            )
        if fitted.interrupted:
            warnings.warn(interruption(len(fitted.history)), stacklevel=2)
        for flag in fitted.flags:
            warnings.warn(f"{flag.name}: {flag.meaning}.", HealthWarning, stacklevel=2)
        assert fitted.model.noise is not None  # the settings ask for it
        self._adopt(fitted.embedding, fitted.model.noise, standardizer, seed=seed)
        self._of_sparse = isinstance(x, sp.csr_array)
        self.flags_ = [flag.name for flag in fitted.flags]
        self.trials_ = {trial.name: trial.score for trial in fitted.trials} if before is None else before.trials
        self._trained: Trained | None = Trained(fitted.model.state_dict(), fitted.progress, data, seed, self.trials_)
        self.history_ = {
            **{name: [getattr(record, name) for record in fitted.history] for name in ("epoch", "loss", "seconds")},
            **{name: [record.metrics[name] for record in fitted.history] for name in METRICS},
        }
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the state of training, which is larger than the rest, unless ``warm_start`` needs it."""
        state = dict(super().__getstate__())
        return state if self.warm_start or "_trained" not in state else {**state, "_trained": None}

    @own_modes()
    def transform(self, X: Any) -> Any:
        """Return the embedding of samples as they are, without noise, in the precision of X: float32 or float64.

        A model of sparse rows with more than 10,000 features returns the joined embedding as a SciPy ``csr_array``. A
        dense row of it would take 40 kB in float32, however few entries it has. The features are then standardised
        without centring, so that 0 stays 0: they differ from centred ones by a shift that is the same for all rows. It
        makes no difference to linear models with an intercept, trees and distances. (Rows of length 1 are also
        stretched a little, each by its own factor, and the shift with them.) ``embedding="learned"`` is dense.
        """
        check_is_fitted(self)
        x = self._checked(X)
        sparse = stays_sparse(self.embedding_, features=self._standardizer.mean.size, of_sparse=self._of_sparse)
        return (sparse_embedding if sparse else dense_embedding)(self.embedding_, self._standardizer, x)

    @own_modes()
    def augment(self, X: Any, *, random_state: int | np.random.RandomState | None = None) -> Any:
        """Return a noisy copy of samples, x + ε with ε drawn from the learned noise, in the units and the shape of X.

        Of a data frame it is a data frame: with its names and types, categories that exist, dates, and gaps where it
        has gaps. Columns that carry no feature, and free text, stay as they are. The copy of bytes is in single
        precision, as noise goes beyond black and white.

        Every call draws another copy. With an int as the estimator's ``random_state``, the sequence of copies is the
        same after every ``fit`` and ``load``.

        Args:
            X: samples, as ``fit`` takes them.
            random_state: an int for one fixed copy, or where the draw comes from; None is the estimator's own sequence.

        >>> from sklearn.datasets import load_digits
        >>> X = load_digits().data[:100]
        >>> model = PiNDA(4, hidden=8, epochs=1, batch_size=50, random_state=0).fit(X)
        >>> model.augment(X).shape
        (100, 64)
        """
        check_is_fitted(self)
        X = collected(X)
        x = self._checked(X)
        drawn = torch.Generator().manual_seed(seed_of_state(self._copies if random_state is None else random_state))
        noisy = self._each(lambda batch: batch + self.noise_.sample(batch, generator=drawn), x)
        norms = self._standardizer.norms(x) if self._standardizer.unit_rows else None
        return as_given(self._preparation, self._standardizer.undo(noisy, norms), X, x)

    @own_modes()
    def noise_scale(self, X: Any, *, relative: bool = True) -> npt.NDArray[Any]:
        """Return σ(x) of every sample and feature, in standard deviations of the feature, or else in the units of X.

        Where rows are scaled to length 1, the units are those of the scaled rows. Where tails are compressed, a small σ
        becomes a larger one far from the middle.
        """
        check_is_fitted(self)
        x = self._checked(X)
        sigma = self._each(self.noise_.relative_scale if relative else self.noise_.scale, x)
        in_units = sigma if relative else sigma * self._standardizer.units(x)
        return self._in_shape_of(undo_image_layout(in_units, self._standardizer.layout), X, x)

    def _each(self, of: Callable[[Tensor], Tensor], x: Samples) -> npt.NDArray[Any]:
        """Return something of every standardised sample that has its shape."""
        rows = make_rows(x, self._standardizer)
        return embed(lambda batch: of(batch).flatten(1), rows).reshape(-1, *self._standardizer.shape)

    @own_modes()
    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file, its parameters in the file's JSON header; no pickle.

        Your own classes and functions are written as their import paths. Objects have none and are refused.
        """
        check_is_fitted(self)
        write_estimator(Path(path), self)

    @classmethod
    @own_modes()
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read an estimator that ``save`` wrote. A file that was altered or damaged since is refused.

        Args:
            path: the file.
            trust: whether to import the parts that the file names by an import path, which runs their code.
        """
        stored = read_estimator(Path(path), parameters=cls._get_param_names(), trust=trust)
        header = stored.header
        self = cls(**header.params)
        self._adopt(stored.embedding, stored.noise, stored.standardizer, seed=seed_of_state(self.random_state))
        self._trained = None
        self.history_, self.flags_, self.trials_ = header.history, header.flags, header.trials
        self.n_features_in_ = header.n_features_in
        self._preparation = stored.preparation
        self._of_sparse = header.of_sparse
        if header.feature_names_in:
            self.feature_names_in_ = np.array(header.feature_names_in, dtype=object)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns of ``transform``: those of the features, then ``pinda0``, ``pinda1`` …

        Args:
            input_features: the names of X's columns, if X had none when it was fitted; by default ``x0``, ``x1`` …

        >>> import pandas as pd
        >>> from sklearn.datasets import load_wine
        >>> X = load_wine(as_frame=True).data[["alcohol", "ash", "hue"]]
        >>> PiNDA(2, hidden=8, epochs=1, batch_size=64, random_state=0).fit(X).get_feature_names_out()
        array(['alcohol', 'ash', 'hue', 'pinda0', 'pinda1'], dtype=object)
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(self.embedding_.column_names(self._encoded_names(names)), dtype=object)

    def _encoded_names(self, names: npt.NDArray[Any]) -> tuple[str, ...]:
        """Return the names of the features that the encoder sees, of the columns of X."""
        if self._preparation is not None:
            return self._preparation.encoding.feature_names or ()
        if self.image_shape is not None:
            names = to_image_layout(names.reshape(1, *self.image_shape), self._standardizer.layout).ravel()
        return tuple(map(str, names))

    def to_onnx(self, path: str | Path, *, what: What = "embedding") -> None:
        """Write ``transform`` as one ONNX file, which runs without torch and pinoise; needs the extra ``export``.

        The file is kept only if onnxruntime computes the same to 1e-5 (``docs/export.md``).

        Args:
            path: the file.
            what: ``"embedding"``, or ``"noise"`` for ``noise_scale``, in the units of X and in standard deviations.
        """
        check_is_fitted(self)
        features = self._encoded_names(_check_feature_names_in(self))
        fitted = ExportedModel(
            standardizer=self._standardizer,
            embedding=self.embedding_,
            noise=self.noise_,
            columns=self.embedding_.column_names(features),
            features=features,
            encoding=table_encoding(self._preparation),
        )
        write_onnx(Path(path), fitted, what=what)

    def _adopt(self, embedding: Embedding, noise: PiNoise, standardizer: Standardizer, *, seed: int) -> None:
        self.embedding_ = embedding
        self.encoder_ = embedding.encoder
        self.noise_ = noise
        self._standardizer = standardizer
        self.mean_ = standardizer.mean
        self.scale_ = standardizer.scale
        self._copies = np.random.RandomState(seed)  # the seeds of the copies that ``augment`` draws

    @property
    def _spans(self) -> Spans:
        """The features of every column that became several."""
        return () if self._preparation is None else self._preparation.spans

    def _checked(self, X: Any, *, fitting: bool = False) -> Samples:
        """Return samples as scikit-learn checks them, with a non-finite entry named by row and column."""
        X = collected(X)
        if fitting:
            self._preparation, notes = learned_preparation(X, columns_from(vars(self)))
            if self._preparation is not None:
                self.notes_ = notes
        if self._preparation is not None:
            validate_data(self, X, reset=fitting, skip_check_array=True)
            return self._preparation.read(InMemory(X, name="X"), labelled=False).train.x
        return checked_numbers(self, X, fitting=fitting, image_shape=self.image_shape)

    def _in_shape_of(self, values: npt.NDArray[Any], X: Any, x: Samples) -> npt.NDArray[Any]:
        """Return values of every feature in the shape and precision of X; encoded features keep their own."""
        return in_precision(values, x).reshape(x.shape if self._preparation is not None else np.shape(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
