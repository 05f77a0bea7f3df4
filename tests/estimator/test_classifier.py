from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pinoise import PiNDA, PiNDAClassifier, UserError
from pinoise.estimator.parameters import seed_of_state
from pinoise.evaluation import student, voting
from pinoise.evaluation.few_labels import FewLabelClassifier

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # one epoch of a small encoder


def small(**changes: Any) -> PiNDAClassifier:
    embedder = PiNDA(n_components=4, hidden=8, epochs=1, batch_size=64)
    model = PiNDAClassifier(embedder, random_state=0)
    model.set_params(**changes)
    return model


@pytest.fixture
def quick(few_trees: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer and smaller models."""
    monkeypatch.setattr(voting, "REPEATS", 1)
    monkeypatch.setattr(voting, "FOLDS", 2)
    monkeypatch.setitem(voting.STRENGTHS, "logistic", (0.01,))  # which takes few steps


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.data[:600], data.target[:600]


def hide(y: np.ndarray, *, per_class: int) -> np.ndarray:
    """Return labels of which only the first few of each class are left."""
    few = np.full(len(y), -1)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)[:per_class]
        few[rows] = y[rows]
    return few


@pytest.mark.slow
# No check is skipped here; scikit-learn itself exempts the array API check where SCIPY_ARRAY_API is not set.
@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore:all labels in y are -1 and 1")
@parametrize_with_checks([small()])  # type: ignore[untyped-decorator]  # scikit-learn ships no types
def test_the_scikit_learn_contract_is_kept(estimator: PiNDAClassifier, check: Any) -> None:
    check(estimator)


def test_few_labels_beside_many_rows_beat_logistic_regression_on_the_labelled_rows() -> None:
    X, y = load_digits(return_X_y=True)
    train, test, few = X[:1200], X[1200:], hide(y[:1200], per_class=5)
    model = PiNDAClassifier(PiNDA(n_components=64, hidden=128, epochs=8), random_state=0).fit(train, few)
    scale = StandardScaler().fit(train)
    plain = LogisticRegression().fit(scale.transform(train[few >= 0]), few[few >= 0])
    raw = scale.transform(test)
    assert model.score(test, y[1200:]) > plain.score(raw, y[1200:]) + 0.03
    assert log_loss(y[1200:], model.predict_proba(test)) < log_loss(y[1200:], plain.predict_proba(raw))
    assert isinstance(model.embedding_, PiNDA)
    assert model.student_ is not None
    assert 0.4 < model.student_.weight < 0.5  # 575 rows are labelled by the vote, and 50 by us
    assert sum(voter.weight for voter in model.chosen_) == pytest.approx(1)
    table = pd.DataFrame(model.cv_results_)
    assert len(table) == 17
    assert table.weight.sum() == pytest.approx(1)
    best = table.loc[table.weight.idxmax()]
    assert tuple(best[["features", "model"]]) == model.chosen_[0].candidate[:2]
    assert best.accuracy == model.chosen_[0].accuracy == table[table.weight > 0].accuracy.max()


@pytest.mark.usefixtures("quick")
def test_every_mark_of_unlabelled_rows_means_the_same(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits[0][:200], digits[1][:200]
    few = hide(y, per_class=2)
    expected = small().fit(X, few)
    words = np.array([f"class {label}" for label in range(10)])
    text = np.where(few >= 0, words[few], None)
    for marked in (
        np.where(few >= 0, few, np.nan),
        pd.Series(few).where(few >= 0).astype("Int64"),
        pd.Series(few, dtype=object).where(few >= 0, None),
        text,
        pd.Series(text),
        pd.Series(text).astype("category"),
        pd.Series(text).astype("string"),
    ):
        model = small().fit(X, marked)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
        predicted = model.predict(X)
        numbers = predicted if predicted.dtype.kind in "if" else np.array([int(word[-1]) for word in predicted])
        np.testing.assert_array_equal(numbers, expected.predict(X))
    assert expected.predict(X).dtype == few.dtype


@pytest.mark.usefixtures("quick")
def test_every_container_of_the_same_rows_gives_the_same(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, few = digits[0][:200], hide(digits[1][:200], per_class=2)
    expected = small().fit(X, few).predict_proba(X)
    for same in (X.tolist(), torch.from_numpy(X), sp.coo_array(X), pd.DataFrame(X)):
        np.testing.assert_allclose(small().fit(same, few).predict_proba(same), expected, atol=0.02)  # as float32


@pytest.mark.usefixtures("quick")
def test_a_frame_with_categories_is_classified(digits: tuple[np.ndarray, np.ndarray]) -> None:
    town = np.array(["Rome", "Oslo"])[np.arange(100) % 2]
    frame = pd.DataFrame({"town": town, "age": np.random.default_rng(0).normal(size=100)})
    y = np.where(np.arange(100) < 20, (town == "Rome").astype(int), -1)
    model = small().fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), town == "Rome")
    assert list(model.feature_names_in_) == ["town", "age"]


@pytest.mark.usefixtures("quick")
def test_one_label_of_each_class_is_enough_and_cannot_be_validated(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits
    model = small().fit(X, hide(y, per_class=1))
    assert model.score(X, y) > 0.4  # chance is 0.1
    assert np.isnan(model.cv_results_["accuracy"]).all()
    assert [voter.weight for voter in model.chosen_] == pytest.approx([0.2] * 5)


@pytest.mark.usefixtures("quick")
def test_the_learned_part_alone_is_enough(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, few = digits[0], hide(digits[1], per_class=3)
    model = small(embedder__embedding="learned").fit(X, few)
    assert {voter.candidate.features for voter in model.chosen_} == {"learned"}
    assert model.predict_proba(X).shape == (600, 10)


@pytest.mark.usefixtures("quick")
def test_a_classifier_is_repeatable_pickled_cloned_and_searched(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, few = digits[0][:200], hide(digits[1][:200], per_class=3)
    model = small().fit(X, few)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    np.testing.assert_array_equal(clone(model).fit(X, few).predict_proba(X), expected)
    assert not np.allclose(small(random_state=1).fit(X, few).predict_proba(X), expected)
    assert model.embedder is not None
    assert model.embedder.random_state is None  # fitting left the given one as it was
    assert not hasattr(model.embedder, "encoder_")
    search = GridSearchCV(small(), {"embedder__n_components": [2, 4]}, cv=2).fit(X, digits[1][:200])
    assert search.best_estimator_.embedding_.n_components == search.best_params_["embedder__n_components"]


@pytest.mark.usefixtures("quick")
def test_the_vote_teaches_a_student_on_unlabelled_rows_and_none_where_all_have_labels(
    digits: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = digits
    assert small().fit(X, y).student_ is None
    monkeypatch.setattr(student, "MOST_UNLABELLED", 60)
    few = hide(y, per_class=2)
    model = small().fit(X, few)
    Z = model.embedding_.transform(X)
    others = np.flatnonzero(few < 0)[np.linspace(0, 579, 60).round().astype(int)]
    Z_known, known = Z[few >= 0], few[few >= 0]
    seed = seed_of_state(0)
    expected = FewLabelClassifier.fit(Z_known, known, Z[others], classes=range(10), raw=64, seed=seed)
    np.testing.assert_allclose(model.predict_proba(X), expected.probabilities(Z), atol=1e-3)
    assert model.student_ is not None
    assert model.student_.weight == pytest.approx(0.5 * 30 / (30 + 20))


@pytest.mark.usefixtures("quick")
def test_the_same_labels_in_a_list_an_array_and_a_series_are_the_same_classes() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    text = ["b" if row[0] > 0 else "m" for row in X]
    gaps = [None, float("nan"), -1, *text[3:40], *[None] * 40]
    for y in (gaps, tuple(gaps), np.array(gaps, dtype=object), pd.Series(gaps)):
        assert small().fit(X, y).classes_.tolist() == ["b", "m"]
    truth = pd.Series([True, False, None] * 26 + [True, False], dtype="boolean")
    assert small().fit(X, truth).classes_.tolist() == [False, True]
    whole = pd.Series([3, 5, None] * 26 + [3, 5], dtype="Int64")
    found = small().fit(X, whole).classes_
    assert found.tolist() == [3, 5]
    assert found.dtype.kind == "i"


@pytest.mark.usefixtures("quick")
def test_rows_without_a_label_do_not_count_in_a_score(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits
    few = hide(y, per_class=10)
    model = small().fit(X, few)
    known = few >= 0
    assert model.score(X, few) == model.score(X[known], y[known]) == np.mean(model.predict(X[known]) == y[known])
    assert model.score(X, np.where(known, y, np.nan)) == model.score(X, few)
    weight = np.arange(len(y)) % 3
    assert model.score(X, few, weight) == pytest.approx(
        np.average(model.predict(X[known]) == y[known], weights=weight[known])
    )
    assert cross_val_score(small(), X, few, cv=2).min() > 0.3  # all rows together have less than 0.2
    with pytest.raises(UserError, match="y has no label, so there is nothing to score"):
        model.score(X, np.full(len(X), -1))


def test_an_embedder_that_is_no_pinda_is_refused() -> None:
    X = np.random.default_rng(0).normal(size=(8, 3))
    for embedder in (StandardScaler(), "pinda", PiNDA):
        with pytest.raises(UserError, match="give an instance of PiNDA, or None"):
            PiNDAClassifier(embedder).fit(X, [0, 1] * 4)  # type: ignore[arg-type]


def test_labels_that_hardly_repeat_are_refused() -> None:
    with pytest.raises(UserError, match="100 different labels in 100 labelled rows: that is a measurement"):
        small().fit(np.random.default_rng(0).normal(size=(100, 3)), np.arange(100))


@pytest.mark.usefixtures("quick")
def test_minus_one_beside_one_is_a_class_and_is_told_where_it_may_be_a_mark() -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    with pytest.warns(UserWarning, match="all labels in y are -1 and 1, which are taken for two classes"):
        assert list(small().fit(X, y).classes_) == [-1, 1]
    some = np.where(np.arange(80) < 20, y, np.nan)
    assert list(small().fit(X, some).classes_) == [-1, 1]
