"""``PiNDA`` as scikit-learn has its estimators: the constructor only stores, and what ``fit`` learns ends in _."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from pinoise.choices import ENCODER, GENERATOR, METHOD, OBJECTIVE
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.memory import collected
from pinoise.data.layout import have_colours
from pinoise.data.rows import make_rows
from pinoise.errors import counted
from pinoise.estimator.parameters import parameters_of, seed_of_state, settings_from
from pinoise.estimator.samples import features_of, learn_samples
from pinoise.estimator.transformer import ModelTransformer
from pinoise.model import Model
from pinoise.modes import own_modes
from pinoise.training.build import build_standardizer
from pinoise.training.callbacks import checked_callbacks, shown
from pinoise.training.config import Settings, complete
from pinoise.training.folder import IN_MEMORY
from pinoise.training.metrics import METRICS
from pinoise.training.run import EarlierTraining, describe_data, fit

_SETTINGS = Settings()  # which the defaults are those of


class HealthWarning(UserWarning):
    """Training ended, but with a named sign of trouble."""


class PiNDA(ModelTransformer):
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
        The contrastive method: "simclr", "simcl", "clae", "moco", "byol", "simsiam" or "dino". Your own
        is a class derived from ``pinoise.methods.Method``, or a function from the projections of two views to a loss
        per sample.
    objective : str, dict or object
        What the noise optimises. ``"supported"`` moves samples along the data, with noise of fixed entropy whose shape
        is learned; ``"paper"`` lets encoder and noise both minimise the contrastive loss; ``"fixed"`` keeps the noise
        as it starts; ``"adversarial"`` lets noise of fixed entropy maximise the loss; ``"information"``
        maximises the mutual information of noise and task. Your own is a class derived from
        ``pinoise.training.objectives.Objective``, or a function from a ``Look`` to a scalar.
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
        Predefined augmentations beside the noise: "gaussian", "scarf", "vime", "dacl", "neighbours",
        "identity", and for images "simclr", "byol" and "crop". None is ``["simclr", "identity"]`` for images, with
        "crop" in place of "simclr" where there are no colours to change, and ``[]`` for vectors. Your own is a
        ``pinoise.views.View``, a torch module, or a function from a batch of samples to a batch of the same shape.
    neighbours : int or None
        How many nearest neighbours a sample may be moved to; 0 for none. None is 10 for objective "supported", but 0
        beside augmentations of images, and 0 for others.
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
    callbacks : sequence of Callback or function
        Called after every epoch with its ``Record``; one that returns True ends training.
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
        parameters = dict(locals())  # which scikit-learn wants stored as they are
        del parameters["self"]
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the encoder and the noise; labels are ignored.

        An interrupt, such as Ctrl-C, ends training: the model is then used as it stands, and a warning says so.
        """
        earlier = self._state_to_go_on_from() if self.warm_start and hasattr(self, "model_") else None
        seed = seed_of_state(self.random_state) if earlier is None else self.model_.settings.training.seed
        settings = self._settings(seed)
        checked_callbacks(self.callbacks)
        X = collected(X)
        if earlier is None:
            data, preparation = learn_samples(self, X, settings.data, self.image_shape)
        else:
            data, preparation = Dataset("X", Part(self._samples(X))), self.model_.preparation
        x = data.train.x
        if self.image_shape is not None and not have_colours(x):
            settings = self._settings(seed, coloured=False)
        with own_modes(), shown(self.verbose) as reporter:
            if earlier is None:
                standardizer = build_standardizer(settings, x, spans=preparation.encoding.spans)
            else:
                standardizer = self.model_.standardizer
            record = describe_data(settings, data, preparation, standardizer)
            fitted = fit(
                settings,
                standardizer,
                make_rows(x, standardizer),
                reporter=reporter,
                callbacks=self.callbacks,
                earlier=earlier,
                keep_interrupted=True,
            )
        if fitted.interrupted:
            done = counted(len(fitted.history), "epoch")
            advice = "the model is used as it stands; warm_start=True goes on."
            warnings.warn(f"fit was interrupted after {done}: {advice}", stacklevel=2)
        for flag in fitted.flags:
            warnings.warn(f"{flag.name}: {flag.meaning}.", HealthWarning, stacklevel=2)
        self._trained = EarlierTraining(fitted.model.state_dict(), fitted.history)
        return self._wrap(
            Model(
                fitted.settings,
                record,
                preparation,
                standardizer,
                fitted.embedding,
                fitted.model.noise,
                fitted.history,
                flags=[flag.name for flag in fitted.flags],
            )
        )

    def _settings(self, seed: int, *, coloured: bool = True) -> Settings:
        settings = settings_from(vars(self), seed=seed, coloured=coloured)
        return settings.model_copy(update={"data": replace(settings.data, source=IN_MEMORY)})

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read an estimator that ``save`` wrote, or a run that ``pinoise train`` trained.

        Its parameters are those of the settings in the folder, in which nothing is left open.

        Args:
            path: the folder.
            trust: whether to import the parts that its ``config.yaml`` names by an import path, which runs their code.
        """
        model = Model.load(path, trust=trust)
        self = cls(**parameters_of(model))
        self.n_features_in_, names = features_of(model.preparation)
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._trained = None
        return self._wrap(model)

    def _wrap(self, model: Model) -> Self:
        """Become the estimator of a model."""
        self.model_ = model
        self.embedding_, self.encoder_ = model.embedding, model.embedding.encoder
        self.noise_: Any = model.noise
        self.mean_, self.scale_ = model.standardizer.mean, model.standardizer.scale
        self.flags_, self.notes_ = list(model.flags), list(model.record.notes)
        self.history_ = {
            **{name: [getattr(record, name) for record in model.history] for name in ("epoch", "loss", "seconds")},
            **{name: [record.metrics[name] for record in model.history] for name in METRICS},
        }
        self._copies = np.random.RandomState(
            model.settings.training.seed
        )  # the seeds of the copies that ``augment`` draws
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
