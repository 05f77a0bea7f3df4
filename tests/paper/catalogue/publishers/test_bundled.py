from __future__ import annotations

import numpy as np
import pytest
from sklearn import datasets

from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set


@pytest.mark.parametrize("name", ["digits", "wine", "breast_cancer"])
def test_both_parts_together_are_scikit_learns_set_and_each_is_stratified(name: str) -> None:
    data = read_set(entry(name), ())
    bunch = getattr(datasets, f"load_{name}")()
    assert data.test is not None
    rows = np.vstack([np.column_stack([np.asarray(part.x), np.asarray(part.y)]) for part in (data.train, data.test)])
    expected = np.column_stack([bunch.data.astype(np.float32), bunch.target])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, expected))
    share = np.bincount(np.asarray(data.test.y)) / np.bincount(bunch.target)
    assert np.abs(share - 0.2).max() < 0.02
    assert data.train.x.dtype == np.float32
    assert data.train.y is not None
    assert data.train.y.dtype == np.int64


def test_the_split_is_always_the_same_and_in_the_order_of_the_source() -> None:
    first, second = (read_set(entry("digits"), ()) for _ in range(2))
    np.testing.assert_array_equal(first.train.x, second.train.x)
    bunch = datasets.load_digits()
    position = {row.tobytes(): index for index, row in enumerate(bunch.data.astype(np.float32))}
    order = [position[row.tobytes()] for row in np.asarray(first.train.x)]
    assert order == sorted(order)
