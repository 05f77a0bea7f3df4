from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data.arrays import ArrayEncoding, learn_arrays
from pinoise.data.dataset import Dataset, Part, RawArrays
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import _restored
from pinoise.errors import UserError

X = np.arange(12, dtype=np.float32).reshape(4, 3)
NUMBERS, TEXT = np.array([0, 1, 0, 1]), np.array(["a", "b", "a", "b"])


def learned(raw: RawArrays) -> tuple[Dataset, ArrayEncoding]:
    return learn_arrays(raw, name="a", where="a.npz")


def test_labels_are_numbered_over_both_parts() -> None:
    raw = RawArrays(Part(X, y=np.array([5, 9, 5, 9])), Part(X[:2], y=np.array([7, 9], dtype=np.int64)))
    data, encoding = learned(raw)
    assert data.test is not None
    assert (np.asarray(data.train.y).tolist(), np.asarray(data.test.y).tolist()) == ([0, 2, 0, 2], [1, 2])
    assert data.class_names == ("5", "7", "9")
    assert _restored(ArrayEncoding, json.loads(json.dumps(asdict(encoding)))) == encoding


def test_later_labels_get_the_numbers_of_training() -> None:
    _, encoding = learned(RawArrays(Part(X, y=np.array([-1.0, 1.0, 1.0, -1.0]))))
    later = encoding.apply(RawArrays(Part(X[:2], y=np.array([1, 1]))), name="b", where="b.npz")
    assert np.asarray(later.train.y).tolist() == [1, 1]
    others = RawArrays(Part(X[:2], y=np.array([3, 1])))
    assert encoding.apply(others, name="b", where="b.npz", labelled=False).train.y is None
    assert encoding.apply(others, name="b", where="b.npz").class_names == ("1", "3")


def test_groups_of_text_are_the_same_number_in_both_parts() -> None:
    raw = RawArrays(Part(X[:3], groups=np.array(["eve", "bob", "eve"])), Part(X[:2], groups=np.array(["zoe", "bob"])))
    data, _ = learned(raw)
    assert data.test is not None
    assert np.asarray(data.train.groups).tolist() == [1, 0, 1]
    assert np.asarray(data.test.groups).tolist() == [2, 0]


def test_later_samples_take_the_layout_of_training() -> None:
    _, sparse = learned(RawArrays(Part(sp.csr_array(X))))
    assert sp.issparse(sparse.apply(RawArrays(Part(X)), name="b", where="b").train.x)
    _, dense = learned(RawArrays(Part(X)))
    np.testing.assert_array_equal(dense.apply(RawArrays(Part(sp.csr_array(X))), name="b", where="b").train.x, X)


def test_samples_of_any_rank_pass_unchanged() -> None:
    pictures = np.zeros((5, 8, 8, 3), dtype=np.uint8)
    data, encoding = learned(RawArrays(Part(pictures)))
    assert data.train.x is pictures
    assert encoding.shape == (8, 8, 3)


def with_nan() -> Any:
    x = X.copy()
    x[2, 1] = np.nan
    return x


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (RawArrays(Part(X, y=np.array([0, 1]))), "a.npz has 4 rows but 2 labels"),
        (RawArrays(Part(X, groups=np.array([0, 1]))), "a.npz has 4 rows but 2 groups"),
        (RawArrays(Part(X), Part(X[:, :2])), "samples of shape (2,), but training had (3,)"),
        (RawArrays(Part(X), feature_names=("a",)), "1 feature names for samples of shape (3,)"),
        (RawArrays(Part(X), Part(with_nan())), "NaN in row 2"),
        (RawArrays(Part(X, y=np.zeros(4))), "every label is '0'"),
        (RawArrays(Part(X, NUMBERS), Part(X, TEXT)), "type int64 and test labels of type large_string"),
        (RawArrays(Part(X, groups=np.ones(4))), "groups must be whole numbers or text"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_mistakes_are_explained(raw: RawArrays, message: str) -> None:
    with pytest.raises(UserError) as caught:
        learned(raw)
    assert message in str(caught.value)


def test_gaps_of_an_array_are_filled_and_marked_now_and_later() -> None:
    x = np.arange(30.0).reshape(10, 3)
    x[2, 1] = x[5, 1] = np.nan
    data, encoding = learn_arrays(RawArrays(Part(x), feature_names=("a", "b", "c")), name="a", where="a.npz")
    assert data.feature_names == ("a", "b", "c", "b=missing")
    assert np.asarray(data.train.x)[[2, 3]].tolist() == [[6, np.nanmedian(x[:, 1]), 8, 1], [9, 10, 11, 0]]
    assert data.notes == ("filled 2 missing values, and marked those of 1 feature",)
    later = encoding.apply(RawArrays(Part(np.array([[np.nan, np.nan, 5.0]]))), name="b", where="b.npz")
    assert np.asarray(later.train.x).tolist() == [[np.nanmedian(x[:, 0]), np.nanmedian(x[:, 1]), 5, 1]]
    options = ReadOptions(missing="error")
    with pytest.raises(UserError, match=r"row 2 .counted from 0., feature 1"):
        learn_arrays(RawArrays(Part(x)), name="a", where="a.npz", options=options)
    with pytest.raises(UserError, match=r"inf in row 0 \(counted from 0\), feature 'a'"):
        encoding.apply(RawArrays(Part(np.array([[np.inf, np.nan, 5.0]]))), name="b", where="b.npz")
