"""What an estimator of scikit-learn does once it is fitted: all that needs no more than a ``Model``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from pinoise.data.dataset import Samples
from pinoise.data.formats.memory import collected
from pinoise.data.layout import to_image_layout
from pinoise.errors import UserError
from pinoise.estimator.parameters import seed_of_state
from pinoise.estimator.samples import as_given, in_precision, later_samples, takes_numbers
from pinoise.export import What
from pinoise.model import Model
from pinoise.modes import own_modes
from pinoise.training.run import EarlierTraining


# scikit-learn ships no types, so its classes are Any to the type checker.
class ModelTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that wraps a ``Model``: ``model_``, after ``fit`` or ``load``."""

    model_: Model
    _trained: EarlierTraining | None

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
        return self.model_.embed(self._samples(X))

    def features(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the same as ``transform``, dense and in double precision, as a classifier takes it."""
        return self.model_.features(self._samples(X))

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

        >>> from pinoise import PiNDA
        >>> from sklearn.datasets import load_digits
        >>> X = load_digits().data[:100]
        >>> model = PiNDA(4, hidden=8, epochs=1, batch_size=50, random_state=0).fit(X)
        >>> model.augment(X).shape
        (100, 64)
        """
        check_is_fitted(self)
        X = collected(X)
        x = self._samples(X)
        seed = seed_of_state(self._copies if random_state is None else random_state)
        return as_given(self.model_.preparation, self.model_.augment(x, seed=seed), X, x)

    @own_modes()
    def noise_scale(self, X: Any, *, relative: bool = True) -> npt.NDArray[Any]:
        """Return σ(x) of every sample and feature, in standard deviations of the feature, or else in the units of X.

        Where rows are scaled to length 1, the units are those of the scaled rows. Where tails are compressed, a small σ
        becomes a larger one far from the middle.
        """
        check_is_fitted(self)
        x = self._samples(X)
        sigma = in_precision(self.model_.noise_scale(x, relative=relative), x)
        return sigma.reshape(np.shape(X)) if takes_numbers(self.model_.preparation) else sigma

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a folder, as ``pinoise train`` writes a run; no pickle.

        ``load_run`` reads it too, and so do ``pinoise embed`` and ``pinoise export``. A model that was saved there
        before is replaced. Your own classes and functions are written as their import paths. Objects have none and are
        refused.
        """
        check_is_fitted(self)
        self.model_.save(path)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the columns of ``transform``: those of the features, then ``pinda0``, ``pinda1`` …

        Args:
            input_features: the names of X's columns, if X had none when it was fitted; by default ``x0``, ``x1`` …

        >>> import pandas as pd
        >>> from pinoise import PiNDA
        >>> from sklearn.datasets import load_wine
        >>> X = load_wine(as_frame=True).data[["alcohol", "ash", "hue"]]
        >>> PiNDA(2, hidden=8, epochs=1, batch_size=64, random_state=0).fit(X).get_feature_names_out()
        array(['alcohol', 'ash', 'hue', 'pinda0', 'pinda1'], dtype=object)
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if not takes_numbers(self.model_.preparation):
            names = self.model_.preparation.encoding.feature_names or names
        elif self.image_shape is not None:
            names = to_image_layout(names.reshape(1, *self.image_shape), self.model_.standardizer.layout).ravel()
        return np.array(self.embedding_.column_names(tuple(map(str, names))), dtype=object)

    def to_onnx(self, path: str | Path, *, what: What = "embedding") -> None:
        """Write ``transform`` as one ONNX file, which runs without torch and pinoise; needs the extra ``export``.

        The file is kept only if onnxruntime computes the same to 1e-5 (``docs/export.md``).

        Args:
            path: the file.
            what: ``"embedding"``, or ``"noise"`` for ``noise_scale``, in the units of X and in standard deviations.
        """
        check_is_fitted(self)
        self.model_.export(path, what=what)

    def _samples(self, X: Any) -> Samples:
        """Return later samples as the model takes them."""
        return later_samples(self, collected(X), self.model_.preparation, self.image_shape)

    def _state_to_go_on_from(self) -> EarlierTraining:
        """Return the state of training. It is not always kept."""
        if self._trained is None:
            raise UserError(
                "warm_start goes on from the state of training, which PiNDA.save does not hold: fit with "
                "warm_start=False, or keep a pickle."
            )
        return self._trained
