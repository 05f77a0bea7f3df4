from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data import dataset
from pinoise.data.checks import check_finite, numeric_samples
from pinoise.errors import UserError


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_named(value: float) -> None:
    x = np.zeros((4, 3), dtype=np.float32)
    x[2, 1] = value
    x[3, 0] = value
    with pytest.raises(UserError, match=r"data\.npy has (NaN|-?inf) in row 2 .*feature 'b'"):
        check_finite(x, ["a", "b", "c"], where="data.npy")


def test_a_bad_value_of_a_picture_is_named_by_its_position() -> None:
    x = np.zeros((2, 3, 4))
    x[1, 2, 3] = np.nan
    with pytest.raises(UserError, match=r"row 1 .*position \(2, 3\)"):
        check_finite(x)


def test_rows_are_counted_across_the_blocks_of_a_memory_mapped_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "CHUNK_VALUES", 10)
    x = np.zeros((50, 4))
    x[37, 2] = np.inf
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(UserError, match=r"row 37 .*feature 2"):
        check_finite(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_a_bad_value_of_a_sparse_matrix_is_found_after_empty_rows() -> None:
    x = sp.csr_array(([1.0, np.nan], ([1, 4], [0, 2])), shape=(6, 3))
    with pytest.raises(UserError, match=r"row 4 .*feature 'c'"):
        check_finite(x, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("uint8", "uint8"), ("int64", "int64"),
     ("bool", "uint8"), (">f4", "float32"), ("object", "float64"), ("longdouble", "float64")],
)  # fmt: skip
def test_types_of_dense_samples(given: str, expected: str) -> None:
    x = np.array([[0, 1], [1, 0]]).astype(given)
    converted = numeric_samples(x, where="x")
    assert converted.dtype == np.dtype(expected)
    np.testing.assert_array_equal(converted, [[0, 1], [1, 0]])


def test_whole_numbers_of_a_sparse_matrix_keep_their_value() -> None:
    for number, expected in ((2**24, np.float32), (2**24 + 1, np.float64)):
        found = numeric_samples(sp.csr_array([[number, 0], [0, 3]]), where="x")
        assert found.dtype == expected
        assert found[0, 0] == number


def test_duplicates_of_a_sparse_matrix_are_summed_in_a_copy() -> None:
    given = sp.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    converted = numeric_samples(given, where="x")
    assert isinstance(converted, sp.csr_array)
    np.testing.assert_array_equal(converted.toarray(), [[1.0, 0.0, 2.0]])
    assert len(given.data) == 3


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([["a", "b"]]), "values of type <U1: samples must be numbers"),
        (np.array([[1 + 2j]]), "values of type complex128"),
        (np.array([["a", 1]], dtype=object), "values of type object"),
        (np.zeros(3), r"shape \(3,\): samples need at least two axes"),
        (np.zeros((0, 3)), r"shape \(0, 3\): there is nothing to learn from"),
        (np.zeros((3, 0)), r"shape \(3, 0\): there is nothing to learn from"),
    ],
)
def test_samples_that_are_no_numbers_are_refused(x: np.ndarray, message: str) -> None:
    with pytest.raises(UserError, match=message):
        numeric_samples(x, where="x")
