from __future__ import annotations

import sys
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from pinoise.errors import UserError
from pinoise.evaluation.logistic import UNKNOWN, few_label_accuracies, few_label_rows
from pinoise.evaluation.rivals import CLASSIFIERS, reduce_by_pca, reduce_by_umap


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    return x[:600], y[:600], x[600:900], y[600:900]


EXPECTED: dict[str, tuple[Any, bool]] = {  # scikit-learn's own estimators, and whether they see rows without a label
    "forest": (RandomForestClassifier(200, random_state=4), False),
    "svm": (SVC(), False),
    "label-spreading": (LabelSpreading(kernel="knn", n_neighbors=7, max_iter=1000), True),
    "self-training": (SelfTrainingClassifier(LogisticRegression(max_iter=1000, tol=1e-3), max_iter=5), True),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_draw_is_what_scikit_learn_scores_under_the_same_labels(
    name: str, digits: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> None:
    train, y, test, y_test = digits
    model, sees_all = EXPECTED[name]
    expected = []
    for draw in range(2):
        rows = few_label_rows(y, labels_per_class=10, draw=draw, seed=4)
        revealed = np.full(len(y), UNKNOWN)
        revealed[rows] = y[rows]
        used = np.arange(len(y)) if sees_all else np.flatnonzero(revealed != UNKNOWN)
        expected.append(model.fit(train[used], revealed[used]).score(test, y_test))
    found = few_label_accuracies(*digits, classifier=CLASSIFIERS[name], draws=2, seed=4)
    assert found == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_is_right_on_what_is_easy_silent_and_the_same_again(name: str) -> None:
    random = np.random.default_rng(0)
    y = np.arange(120) % 3
    x = 4 * np.eye(3)[y] + 0.3 * random.standard_normal((120, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, again = (few_label_accuracies(x, y, x, y, classifier=CLASSIFIERS[name], draws=2) for _ in range(2))
    assert first == again
    assert min(first) > 0.95


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_few_rows_and_lone_classes_are_fine(name: str) -> None:
    x = np.concatenate([np.zeros((6, 2)), np.full((6, 2), 5.0), np.full((1, 2), 50.0)])
    y = np.repeat([0, 1, 2], [6, 6, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels in (2, 10):  # some rows without a label, and none
            found = few_label_accuracies(x, y, x, y, classifier=CLASSIFIERS[name], labels_per_class=labels, draws=2)
            assert all(0 <= accuracy <= 1 for accuracy in found)


@pytest.mark.parametrize("shape", [(200, 80), (30, 8), (20, 80)])
def test_principal_components_are_those_of_the_singular_vectors(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    train, test = random.standard_normal(shape) * np.logspace(0, -2, shape[1]), random.standard_normal((5, shape[1]))
    k = min(50, *shape)
    centre = train.mean(axis=0)
    directions = np.linalg.svd(train - centre, full_matrices=False)[2][:k]
    z, z_test = reduce_by_pca(train, test)
    assert z.shape == (len(train), k)
    np.testing.assert_allclose(np.abs(z), np.abs((train - centre) @ directions.T), atol=1e-6)
    np.testing.assert_allclose(np.abs(z_test)[:, :5], np.abs((test - centre) @ directions.T)[:, :5], atol=1e-6)


def test_umap_is_used_where_it_is_and_asked_for_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.eye(6)
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    with pytest.raises(UserError, match="pip install umap-learn"):
        reduce_by_umap(x, x)

    def fake(**options: Any) -> Any:
        assert options["n_neighbors"] == 5
        assert options["random_state"] == 0
        torch.set_num_threads(torch.get_num_threads() + 1)  # as numba does
        return SimpleNamespace(fit_transform=lambda train: train[:, :2], transform=lambda test: test[:, :2])

    module = ModuleType("umap")
    module.UMAP = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "umap", module)
    threads = torch.get_num_threads()
    z, z_test = reduce_by_umap(x, 2 * x)
    assert torch.get_num_threads() == threads
    np.testing.assert_array_equal(z, x[:, :2])
    np.testing.assert_array_equal(z_test, 2 * x[:, :2])
