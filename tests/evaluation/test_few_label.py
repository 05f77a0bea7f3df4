from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import pinoise.evaluation.few_label as few_label_module
from pinoise.errors import UserError
from pinoise.evaluation import few_label_accuracies, few_label_rows, fit_logistic


def test_each_class_gives_the_asked_rows_or_all_it_has() -> None:
    y = np.repeat([5, 0, 2], [30, 3, 12])
    rows = few_label_rows(y, labels_per_class=10)
    assert len(np.unique(rows)) == len(rows)
    labels, counts = np.unique(y[rows], return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {0: 3, 2: 10, 5: 10}


def test_rows_follow_the_seed_and_the_draw() -> None:
    y = np.arange(1000) % 5
    first = few_label_rows(y, draw=1, seed=2)
    np.testing.assert_array_equal(first, few_label_rows(y, draw=1, seed=2))
    assert set(first) != set(few_label_rows(y, draw=2, seed=2))
    assert set(first) != set(few_label_rows(y, draw=1, seed=3))


def test_every_row_of_a_class_is_drawn_equally_often() -> None:
    y = np.zeros(20, dtype=np.int64)
    drawn = np.concatenate([few_label_rows(y, labels_per_class=5, draw=draw) for draw in range(2000)])
    share = np.bincount(drawn, minlength=20) / 2000
    np.testing.assert_allclose(share, 0.25, atol=0.05)  # five standard deviations


def test_every_embedding_is_probed_on_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = load_digits(return_X_y=True)
    fitted: list[np.ndarray] = []

    def recording(train: np.ndarray, labels: np.ndarray) -> object:
        fitted.append(train[:, 0].copy())
        return fit_logistic(train, labels)

    monkeypatch.setattr(few_label_module, "fit_logistic", recording)
    number = np.arange(len(x))
    for embedding in (np.column_stack([number, x]), np.column_stack([number, np.sqrt(x), x**2])):
        few_label_accuracies(embedding, y, embedding[:50], y[:50], draws=3, seed=4)
    for first, second in zip(fitted[:3], fitted[3:], strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(fitted[0], fitted[1])


def test_every_draw_is_what_scikit_learn_scores_on_its_rows() -> None:
    x, y = load_digits(return_X_y=True)
    accuracies = []
    for draw in range(3):
        rows = few_label_rows(y[:1200], labels_per_class=10, draw=draw, seed=1)
        scaler = StandardScaler().fit(x[rows])
        model = LogisticRegression(max_iter=2000).fit(scaler.transform(x[rows]), y[rows])
        accuracies.append(model.score(scaler.transform(x[1200:]), y[1200:]))
    found = few_label_accuracies(x[:1200], y[:1200], x[1200:], y[1200:], draws=3, seed=1)
    assert found == pytest.approx(accuracies, abs=0.005)
    assert len(set(found)) == 3
    assert 0.7 < min(found) <= max(found) < 0.95


def test_more_labels_help() -> None:
    x, y = load_digits(return_X_y=True)
    few, many = (few_label_accuracies(x, y, x, y, labels_per_class=labels, draws=3) for labels in (2, 50))
    assert max(few) < min(many)


def test_a_class_with_one_member_is_fine() -> None:
    x, y = np.array([[0.0], [0.1], [9.0]]), np.array([0, 0, 1])
    assert few_label_accuracies(x, y, x, y, draws=2) == (1.0, 1.0)


@pytest.mark.parametrize(("labels", "draws"), [(0, 1), (1, 0)])
def test_nothing_to_draw_is_an_error(labels: int, draws: int) -> None:
    with pytest.raises(UserError, match=f"labels_per_class is {labels} and draws is {draws}"):
        few_label_accuracies(np.eye(2), np.arange(2), np.eye(2), np.arange(2), labels_per_class=labels, draws=draws)
