from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from pinoise.errors import UserError
from pinoise.evaluation.knn import knn_accuracy, knn_neighbours, knn_predict


def slow_neighbours(train: np.ndarray, test: np.ndarray, k: int) -> np.ndarray:
    """All differences at once, ranked by (distance, row)."""
    difference = test[:, None].astype(np.float64) - train[None].astype(np.float64)
    distance = (difference**2).sum(axis=2)
    rows = np.broadcast_to(np.arange(len(train)), distance.shape)
    return np.lexsort((rows, distance), axis=1)[:, :k]


def random_sets(n: int, m: int, d: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    train, test = random.standard_normal((n, d)), random.standard_normal((m, d))
    return train.astype(np.float32), random.integers(0, 4, n), test.astype(np.float32)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("d", [1, 2, 40])
def test_predictions_equal_scikit_learn_on_random_data(k: int, d: int) -> None:
    train, y, test = random_sets(300, 120, d)
    expected = KNeighborsClassifier(k).fit(train, y).predict(test)
    np.testing.assert_array_equal(knn_predict(train, y, test, k=k), expected)


def test_accuracy_equals_scikit_learn_on_a_real_set(real_data: Path) -> None:
    with np.load(real_data / "usps.npz") as usps:
        x, y, x_test, y_test = usps["X_train"], usps["y_train"], usps["X_test"], usps["y_test"]
    expected = KNeighborsClassifier(5, algorithm="brute").fit(x, y).score(x_test, y_test)
    assert knn_accuracy(x, y, x_test, y_test) == pytest.approx(expected, abs=1 / len(y_test))


@pytest.mark.parametrize("held", [1, 500, 2**22])
@pytest.mark.parametrize("copies", [1, 3])
def test_neighbours_are_exact_however_much_is_held_at_a_time(copies: int, held: int) -> None:
    train, _, test = random_sets(90, 40, 3)
    train = np.tile(train, (copies, 1))
    np.testing.assert_array_equal(knn_neighbours(train, test, held=held), slow_neighbours(train, test, 5))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, -1e6])
def test_a_large_offset_costs_no_precision(offset: float) -> None:
    train, _, test = random_sets(400, 100, 8)
    train, test = train + np.float32(offset), test + np.float32(offset)
    np.testing.assert_array_equal(knn_neighbours(train, test, k=5), slow_neighbours(train, test, 5))


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_values_whose_squares_leave_single_precision_are_told_apart(size: float) -> None:
    train, _, test = (np.float32(size) * x for x in random_sets(400, 100, 8))
    np.testing.assert_array_equal(knn_neighbours(train, test), slow_neighbours(train, test, 5))


def test_distances_that_only_double_precision_tells_apart_are_ranked() -> None:
    steps = np.random.default_rng(0).permutation(np.arange(1, 301))
    side = np.where(np.arange(300) % 2, 1.0, -1.0)
    train = np.column_stack([side, steps * 2.0**-20]).astype(np.float32)  # at 1 + steps² · 2⁻⁴⁰ from the origin
    np.testing.assert_array_equal(
        knn_neighbours(train, np.zeros((1, 2), dtype=np.float32)), np.argsort(steps)[None, :5]
    )


def test_generic_data_far_from_the_origin_have_the_neighbours_of_the_slow_search() -> None:
    train, _, test = (x + 1e6 for x in random_sets(2000, 300, 32))
    np.testing.assert_array_equal(knn_neighbours(train, test), slow_neighbours(train, test, 5))


def test_of_tied_labels_the_smallest_wins() -> None:
    train, test = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0.1], [2.9]])
    y = np.array([9, 9, 2, 2])
    for k in (2, 4):
        expected = KNeighborsClassifier(k).fit(train, y).predict(test)
        np.testing.assert_array_equal(knn_predict(train, y, test, k=k), expected)
    np.testing.assert_array_equal(knn_predict(train, y, test, k=4), [2, 2])


def test_bytes_and_floats_give_the_same_neighbours() -> None:
    x = load_digits().data
    as_bytes = x.astype(np.uint8)
    np.testing.assert_array_equal(
        knn_neighbours(as_bytes[:500], as_bytes[500:600]), slow_neighbours(x[:500], x[500:600], 5)
    )


def test_a_label_that_train_lacks_counts_as_wrong() -> None:
    x = np.array([[0.0], [1.0], [10.0]])
    assert knn_accuracy(x, np.array([0, 0, 1]), x, np.array([0, 7, 1]), k=1) == pytest.approx(2 / 3)


@pytest.mark.parametrize("k", [-1, 0, 4])
def test_k_outside_the_training_rows_is_an_error(k: int) -> None:
    with pytest.raises(UserError, match=f"k is {k}, but must be from 1 to the number of training rows, which is 3"):
        knn_predict(np.eye(3), np.arange(3), np.eye(3), k=k)


def test_as_many_neighbours_as_rows_is_fine() -> None:
    np.testing.assert_array_equal(knn_neighbours(np.array([[3.0], [1.0]]), np.array([[0.0]]), k=2), [[1, 0]])
