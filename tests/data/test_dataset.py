from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import pinoise.data
from pinoise.data import dataset
from pinoise.data.dataset import Dataset, Part, row_slices, split


def numbered(n: int) -> Part:
    return Part(np.arange(n).reshape(n, 1), np.arange(n) % 3, np.arange(n) // 2)


def test_taken_rows_keep_their_label_and_group_in_the_order_asked_for() -> None:
    taken = numbered(10).take(np.array([7, 2, 7]))
    assert np.asarray(taken.x).ravel().tolist() == [7, 2, 7]
    assert np.asarray(taken.y).tolist() == [1, 2, 1]
    assert np.asarray(taken.groups).tolist() == [3, 1, 3]


def test_taken_rows_know_where_in_the_source_they_were() -> None:
    whole = Dataset("toy", numbered(100))
    assert whole.train.origin is None
    parts = split(whole)
    assert parts.test is not None
    for part in (parts.train, parts.test, parts.draw(30).train, parts.train.take(np.array([-1, 3]))):
        assert part.origin is not None
        assert part.origin.total == 100
        assert part.origin.rows[:].tolist() == np.asarray(part.x).ravel().tolist()  # the samples are their numbers


def test_sparse_rows_are_taken_and_absent_labels_stay_absent() -> None:
    taken = Part(sp.csr_array(np.eye(4))).take(np.array([3, 0]))
    assert isinstance(taken.x, sp.csr_array)
    assert taken.x.toarray().argmax(axis=1).tolist() == [3, 0]
    assert (taken.y, taken.groups) == (None, None)


def test_classes_are_counted_over_both_parts() -> None:
    x = np.zeros((2, 1))
    assert Dataset("toy", Part(x, np.array([0, 1])), Part(x, np.array([0, 4]))).n_classes == 5
    assert Dataset("toy", Part(x)).n_classes == 0


def test_a_limit_takes_the_same_rows_every_time_from_everywhere_and_leaves_the_test_part() -> None:
    whole = Dataset("toy", numbered(1000), numbered(50), notes=("a",))
    first, second = whole.draw(100), whole.draw(100)
    rows = np.asarray(first.train.x).ravel()
    assert rows.tolist() == np.asarray(second.train.x).ravel().tolist() == sorted(set(rows.tolist()))
    assert len(rows) == 100
    assert np.histogram(rows, bins=4, range=(0, 1000))[0].min() > 10
    assert np.asarray(first.train.y).tolist() == (rows % 3).tolist()
    assert first.test is whole.test
    assert first.notes == ("a",)
    assert whole.draw(1000) is whole.draw(5000) is whole


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (10, 3), (11, 3), (5, 100)])
def test_slices_cover_every_row_once_and_are_bounded(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "CHUNK_VALUES", 15)
    slices = list(row_slices(np.zeros(shape)))
    assert [row for chunk in slices for row in range(chunk.start, chunk.stop)] == list(range(shape[0]))
    assert all((chunk.stop - chunk.start) * shape[1] <= max(15, shape[1]) for chunk in slices)


def test_every_public_name_is_there_and_an_unknown_one_is_an_attribute_error() -> None:
    assert all(getattr(pinoise.data, name) is not None for name in pinoise.data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'splti'"):
        _ = pinoise.data.splti
