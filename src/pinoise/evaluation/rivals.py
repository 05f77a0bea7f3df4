"""What a user would pick instead of an embedding: classifiers and reductions of the features themselves.

Classifiers see the same few labels as the probe of an embedding. None is tuned: the settings are scikit-learn's, except
where a comment says why.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from pinoise.data.dataset import Array, Labels
from pinoise.errors import UserError
from pinoise.evaluation.logistic import Classifier, Predict, on_labelled
from pinoise.evaluation.softmax import one_thread

NEIGHBOURS = 7  # of a row in the graph of label spreading, as in scikit-learn
COMPONENTS = 50  # the most of a reduction

Reduce = Callable[[Array, Array], tuple[Array, Array]]


def spread_labels(train: Array, test: Array) -> Predict:
    """Label spreading over the graph of nearest neighbours, which is built once for all draws of labels.

    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> spread_labels(x, np.array([[0.05], [5.05]]))(np.array([0, -1, -1, 1, -1, -1]), 0)
    array([0, 1])
    """
    k = min(NEIGHBOURS, len(train) // 2)
    search = NearestNeighbors(n_neighbors=k).fit(train)
    among = search.kneighbors_graph(train)  # like scikit-learn's own kernel "knn"; a row is a neighbour of itself
    across = search.kneighbors_graph(test).T

    def predict(y: Labels, seed: int) -> Labels:
        rows = np.arange(len(y))[:, None]  # the kernel knows the samples by their numbers
        # The 30 rounds of scikit-learn are too few on some data.
        model = LabelSpreading(kernel=lambda a, b: among if a is b else across, max_iter=1000).fit(rows, y)
        with np.errstate(invalid="ignore"):  # a row that no label reaches is of the first class
            return np.asarray(model.predict(np.arange(len(test))[:, None]))

    return predict


def train_itself(train: Array, test: Array) -> Predict:
    """Self-training: logistic regression that adds its confident predictions to the labels and is fitted again.

    >>> x = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> train_itself(x, np.array([[0.05], [5.05]]))(np.array([0, -1, -1, 1, -1, -1]), 0)
    array([0, 1])
    """

    def predict(y: Labels, seed: int) -> Labels:
        # Nearly all rows that are ever added are added in the first rounds, and a round is a fit on up to all rows.
        model = SelfTrainingClassifier(LogisticRegression(max_iter=1000, tol=1e-3), max_iter=5)
        with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
            # Small classes are all labelled.
            warnings.filterwarnings("ignore", message="y contains no unlabeled samples")
            return np.asarray(model.fit(train, y).predict(test))

    return predict


def _boosting(x: Array, y: Array, seed: int) -> GradientBoostingClassifier:
    # HistGradientBoosting puts at least 20 rows into a leaf, so it cannot split ten rows of two classes, and its
    # histograms cost more than such small samples. Each split looks at √d features, and larger steps need fewer trees,
    # of which every class has its own: this keeps wide data and many classes affordable.
    how = {"n_estimators": 30, "learning_rate": 0.2, "max_features": "sqrt"}
    return GradientBoostingClassifier(**how, random_state=seed).fit(x, y)


CLASSIFIERS: Mapping[str, Classifier] = {
    "forest": on_labelled(lambda x, y, seed: RandomForestClassifier(n_estimators=200, random_state=seed).fit(x, y)),
    "boosting": on_labelled(_boosting),
    "svm": on_labelled(lambda x, y, _: SVC().fit(x, y)),
    "label-spreading": spread_labels,
    "self-training": train_itself,
}


def reduce_by_pca(train: Array, test: Array) -> tuple[Array, Array]:
    """Return both parts in the first principal components of the training part, at most ``COMPONENTS``.

    >>> [z.shape for z in reduce_by_pca(np.eye(4), np.ones((2, 4)))]
    [(4, 4), (2, 4)]
    """
    model = PCA(min(COMPONENTS, *train.shape), random_state=0).fit(train)
    return model.transform(train), model.transform(test)


def reduce_by_umap(train: Array, test: Array, *, components: int = 10) -> tuple[Array, Array]:
    """Return both parts as umap-learn, which need not be installed, places them in a few dimensions."""
    try:
        umap: Any = import_module("umap")
    except ImportError as error:
        raise UserError("UMAP needs umap-learn, which is not installed: pip install umap-learn.") from error
    neighbours = min(15, len(train) - 1)
    with one_thread():  # numba raises torch's to all cores, and fits after it wait for busy ones
        model = umap.UMAP(n_neighbors=neighbours, n_components=components, min_dist=0.0, random_state=0, n_jobs=1)
        return np.asarray(model.fit_transform(train)), np.asarray(model.transform(test))


REDUCTIONS: Mapping[str, Reduce] = {"pca": reduce_by_pca, "umap": reduce_by_umap}
