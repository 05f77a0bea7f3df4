"""``PiNDAClassifier``: many rows, few labels."""

from __future__ import annotations

import warnings
from datetime import date
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from pinoise.data.formats.memory import is_table
from pinoise.data.table.labels import MANY_CLASSES
from pinoise.data.target import UNLABELLED
from pinoise.errors import UserError, brief
from pinoise.estimator.parameters import seed_of_state
from pinoise.estimator.pinda import PiNDA
from pinoise.evaluation.few_labels import FewLabelClassifier
from pinoise.evaluation.student import embedded_parts


# scikit-learn ships no types, so its classes are Any to the type checker.
class PiNDAClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn an embedding from all rows with ``PiNDA``, and a classifier from the few rows that have a label.

    The classifier is a weighted vote of logistic regression on the raw features, on the learned ones and on both
    joined, and of extremely randomised trees on the raw and on the joined ones. Cross-validation on the labelled rows
    chooses the strength of each, by log loss, and its weight, exp(2 √n · accuracy) with n labels: few labels give
    nearly equal weights, many labels leave the best alone.

    The vote then labels the unlabelled rows, at most 2,000 of them, and its most confident half teaches a student:
    logistic regression on the whole embedding, which has up to half of the weight. On validation rows of 15 sets this
    added 2.5 points with 2 labels per class; with 10, on 13 of them, 0.1. At 2 labels, models that train themselves
    and rows balanced by class added less, and correcting the classes' shares by EM did harm.

    The choice costs 17 models × 5 folds × 2 repeats = 170 small fits, half as many above 200 labels. At most about
    500 labelled rows take part, whatever their number. Then at most 5 models are fitted on all labelled rows. With
    an embedding that lacks the raw features (``PiNDA(embedding="learned")``, images), 6 and 2 models take their place.

    Parameters
    ----------
    embedder : PiNDA or None
        What learns the embedding, cloned before it is fitted. None is ``PiNDA()``. Of an instance that is given, a
        grid reaches the parameters by ``embedder__epochs`` and so on.
    random_state : int, RandomState instance or None
        Of folds and trees, and of the embedder if that has none of its own. An int makes the result repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    embedding_ : PiNDA
        The fitted embedder.
    chosen_ : tuple
        The voters, the heaviest first; each has a ``candidate`` (its ``features``, ``model`` and ``strength``), a
        ``weight``, and its validated ``accuracy`` and ``log_loss``; ``str`` makes a line of each.
    student_ : Student or None
        Its ``coefficients``, ``intercepts`` and ``weight``; None where (nearly) every row has a label.
    cv_results_ : dict of lists
        The same of every candidate, for ``pandas.DataFrame``. ``accuracy`` is nan where no row could be held out: each
        class had one label.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input had them

    Notes
    -----
    ``save`` stores a fitted classifier without pickle; pickle and joblib work too.

    ``score`` judges the rows that have a label, so ``cross_val_score`` and ``GridSearchCV`` take a ``y`` with −1 for
    the others. scikit-learn's splitters refuse nan and None.

    Probabilities are rough with few labels. ``benchmarks/results`` has the gap between confidence and accuracy; it is
    smaller than that of logistic regression on raw features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pinoise import PiNDA, PiNDAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(500) < 50, y[:500], -1)  # 50 labels
    >>> embedder = PiNDA(n_components=16, hidden=64, epochs=5)
    >>> model = PiNDAClassifier(embedder, random_state=0).fit(X[:500], few)
    >>> model.score(X[500:], y[500:]) > 0.7
    True
    """

    def __init__(
        self, embedder: PiNDA | None = None, *, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.embedder = embedder
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from all rows of X, and from the labels in y.

        Parameters
        ----------
        X : samples, as ``PiNDA.fit`` takes them
        y : array-like of shape (n_samples,)
            Numbers, with −1 or nan for rows without a label; or text, with None or nan for them. Masked entries are
            without a label, too. Labels that are all −1 and 1 are two classes.
        """
        if y is None:
            raise UserError("PiNDAClassifier requires y to be passed, but the target y is None.")
        if not isinstance(self.embedder, PiNDA | None):
            raise UserError(f"embedder is {brief(self.embedder)}: give an instance of PiNDA, or None.")
        y = column_or_1d(_as_array(y), dtype=None, warn=True)
        check_consistent_length(X, y)
        check_kinds(y)
        labelled = has_label(y)
        classes, numbers = class_numbers(y[labelled])
        seed = seed_of_state(self.random_state)
        embedder = PiNDA() if self.embedder is None else clone(self.embedder)
        if embedder.random_state is None:
            embedder.set_params(random_state=seed)
        model = embedder.fit(X).model_
        Z, unlabelled = embedded_parts(
            lambda rows: embedder.features(rows_of(X, rows)), np.flatnonzero(labelled), total=len(labelled)
        )
        names, raw = classes.tolist(), model.raw_columns
        classifier = FewLabelClassifier.fit(Z, numbers, unlabelled, classes=names, raw=raw, seed=seed)
        return self._wrap(embedder, classifier, classes)

    def _wrap(self, embedding: PiNDA, classifier: FewLabelClassifier, classes: npt.NDArray[Any]) -> Self:
        """Become the classifier on an embedding."""
        self.embedding_, self._classifier = embedding, classifier
        self.classes_, self.n_features_in_ = classes, embedding.n_features_in_
        if hasattr(embedding, "feature_names_in_"):
            self.feature_names_in_ = embedding.feature_names_in_
        self.chosen_, self.student_ = classifier.vote.voters, classifier.student
        self.cv_results_ = classifier.table()
        return self

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to a folder, as ``pinoise train --target`` writes a run; no pickle.

        ``pinoise predict`` and ``load_run`` read it too. A model that was saved there before is replaced.
        """
        check_is_fitted(self)
        self.embedding_.model_.save(path, self._classifier)

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read a classifier that ``save`` wrote, or a run that was trained with ``--target``.

        Args:
            path: the folder.
            trust: whether to import the parts that its ``config.yaml`` names by an import path, which runs their code.
        """
        embedding = PiNDA.load(path, trust=trust)
        classifier = embedding.model_.classifier
        self = cls(clone(embedding), random_state=classifier.vote.seed)
        return self._wrap(embedding, classifier, np.array(classifier.classes))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of every class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._classifier.probabilities(self.embedding_.features(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of every row."""
        places = self.predict_proba(X).argmax(axis=1)  # first, as it says that nothing was fitted
        most_probable: npt.NDArray[Any] = self.classes_[places]
        return most_probable

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows that have a label."""
        check_is_fitted(self)
        y = column_or_1d(_as_array(y), dtype=None)
        check_consistent_length(X, y)
        known = is_given(y)
        if y.dtype.kind in "ifO" and UNLABELLED not in self.classes_.tolist():
            known[known] = y[known] != UNLABELLED
        if not known.any():
            raise UserError("y has no label, so there is nothing to score.")
        rows = np.flatnonzero(known)
        truth = np.array(y[rows].tolist())
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(super().score(rows_of(X, rows), truth, weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _as_array(y: Any) -> Any:
    """Return labels that are masked, in a list, of pandas' own types or a tensor, as scikit-learn takes them."""
    if isinstance(y, np.ma.MaskedArray):
        plain = y.data.astype(object)
        plain[np.ma.getmaskarray(y)] = None
        return plain
    if isinstance(y, list | tuple):
        return np.array(y, dtype=object)  # NumPy would make text of numbers and gaps beside text
    if type(getattr(y, "dtype", None)).__module__.startswith("pandas"):
        return y.astype(object)  # which keeps truth values and whole numbers beside gaps
    return y.detach().cpu().numpy() if isinstance(y, Tensor) else y


def check_kinds(y: npt.NDArray[Any]) -> None:
    """Refuse labels that are no text, numbers or dates.

    >>> check_kinds(np.array([{"a": 1}, None], dtype=object))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: y holds a dict: labels must be text or whole numbers.
    """
    for label in y[:1] if y.dtype.kind in "SV" else y if y.dtype.kind == "O" else ():
        if isinstance(label, bytes | np.void) or not (isinstance(label, _LABELS) or _is_missing(label)):
            raise UserError(f"y holds a {type(label).__name__}: labels must be text or whole numbers.")


_LABELS = (str, int, float, np.generic, date)


def has_label(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows have a label: not None, nan or −1. Text has no mark but None and nan.

    Where all numbers are −1 and 1, both are classes; without nan among them, a warning says so.

    >>> has_label(np.array([0, 2, -1])).tolist(), has_label(np.array([1, -1, np.nan])).tolist()
    ([True, True, False], [True, True, False])
    >>> has_label(np.array(["-1", "yes", None, np.nan], dtype=object)).tolist()
    [True, True, False, False]
    """
    given = is_given(y)
    if y.dtype.kind not in "ifO":
        return given
    if set(y[given].tolist()) != {UNLABELLED, 1}:
        given[given] = y[given] != UNLABELLED
        return given
    if given.all():
        warnings.warn(
            "all labels in y are -1 and 1, which are taken for two classes: mark rows without a label by nan.",
            stacklevel=3,
        )
    return given


def is_given(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries are not None or nan.

    >>> is_given(np.array(["a", None], dtype=object)).tolist(), is_given(np.array([-1.0, np.nan])).tolist()
    ([True, False], [True, False])
    """
    return np.array([not _is_missing(value) for value in y], dtype=np.bool_)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' own
        return True
    return isinstance(value, float | np.generic) and bool(value != value)


def class_numbers(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the classes, sorted, and the class number of every label; refuse what is not a classification.

    >>> class_numbers(np.array(["b", "a", "b"], dtype=object))
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if len(labels) == 0:
        raise UserError(
            "y has no label, but classes need labels: give some, and mark only the other rows by -1 or nan."
        )
    if labels.dtype.kind == "O":
        if len({isinstance(label, str) for label in labels}) > 1:
            raise UserError("y mixes text and numbers: make the labels all text or all numbers.")
        labels = np.array(labels.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on many classes, which is said below
        check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        hint = "" if classes.dtype.kind in "US" else "; -1 marks rows without a label"
        raise UserError(f"y has one class, {brief(classes.tolist()[0])}, and a classifier needs two or more{hint}.")
    if len(classes) > MANY_CLASSES and len(classes) > len(labels) / 2:
        raise UserError(
            f"y has {len(classes)} different labels in {len(labels)} labelled rows: that is a measurement or an "
            "identifier, not a class."
        )
    return classes, numbers.astype(np.int64)


def rows_of(X: Any, rows: npt.NDArray[np.int64]) -> Any:
    """Return some rows of whatever ``PiNDA`` takes.

    >>> rows_of([[1, 2], [3, 4]], np.array([1]))
    [[3, 4]]
    """
    if is_table(X) or isinstance(X, list | tuple):
        return _safe_indexing(X, rows)
    array: Any = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
    return array[rows]
