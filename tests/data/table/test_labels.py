from __future__ import annotations

from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import LabelEncoder

from pinoise.data.table.labels import learn_targets, typed
from pinoise.errors import UserError

learn_labels = partial(learn_targets, regression=False)


@given(st.lists(st.integers(-50, 50), min_size=2).filter(lambda values: len(set(values)) > 1))
def test_numbers_agree_with_scikit_learn(values: list[int]) -> None:
    y = np.array(values)
    encoding = learn_labels(y, where="y")
    reference = LabelEncoder().fit(y)
    np.testing.assert_array_equal(encoding.encode(y, where="y"), reference.transform(y))
    assert encoding.names == tuple(str(value) for value in reference.classes_)


def test_numbers_are_sorted_as_numbers_and_text_as_text() -> None:
    assert learn_labels(np.array([10, 9, 100]), where="y").names == ("9", "10", "100")
    assert learn_labels(np.array(["10", "9", "100"]), where="y").names == ("10", "100", "9")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.array([1.0, -1.0]), ("-1", "1")),
        (np.array([0.5, 1.0]), ("0.5", "1")),
        (np.array([True, False]), ("false", "true")),
        (np.array([b"x", b"a"]), ("a", "x")),
        (np.array([[3], [1]]), ("1", "3")),
        (pa.array([Decimal("2.50"), Decimal("1.00")]), ("1", "2.5")),
        (pa.chunked_array([["b"], [" a "]]), ("a", "b")),
        (pa.array(["b", "a"]).dictionary_encode(), ("a", "b")),
    ],
)
def test_labels_of_any_type(values: object, names: tuple[str, ...]) -> None:
    encoding = learn_labels(values, where="y")
    assert encoding.names == names
    assert sorted(encoding.encode(values, where="y").tolist()) == [0, 1]


def test_one_label_written_as_float_integer_or_text_is_the_same() -> None:
    encoding = learn_labels(np.array([1.0, 2.0]), where="y")
    for values in (np.array([2, 1]), np.array(["2", "1"]), np.array([2.0, 1.0])):
        assert encoding.encode(values, where="y").tolist() == [1, 0]


def test_given_names_keep_their_order_even_for_an_absent_class() -> None:
    by_number = learn_labels(np.array([2, 0]), where="y", names=["cat", "dog", "ant"])
    assert by_number.names == ("cat", "dog", "ant")
    assert by_number.encode(np.array([2, 1]), where="y").tolist() == [2, 1]
    by_name = learn_labels(np.array(["dog", "cat"]), where="y", names=["cat", "dog", "ant"])
    assert by_name.encode(np.array(["ant", "cat"]), where="y").tolist() == [2, 0]


def test_a_label_without_a_name_is_refused() -> None:
    with pytest.raises(UserError, match="label '7' has no entry among the 2 class names"):
        learn_labels(np.array([0, 7]), where="y", names=["cat", "dog"])


def test_a_missing_label_is_named_by_its_row() -> None:
    with pytest.raises(UserError, match=r"label of data row 3 is missing \(2 missing in all\)"):
        learn_labels(pa.array(["a", "b", None, ""]), where="y")
    with pytest.raises(UserError, match="label of data row 2 is missing"):
        learn_labels(np.array([0.0, np.nan]), where="y")


def test_an_unknown_label_is_named_with_the_known_ones() -> None:
    encoding = learn_labels(np.array(["a", "b"]), where="y")
    with pytest.raises(UserError, match=r"test\.csv: the label 'z' in data row 2 is not one of .*: a, b"):
        encoding.encode(np.array(["a", "z"]), where="test.csv")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 1]), "every label is '1'"),
        (np.zeros((3, 2)), "one value for each row"),
        (["a", 1], "mixes labels of different types"),
        (np.array([]), "holds no labels"),
        (np.arange(200) / 7, "200 different labels in 200 rows: that is a measurement"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "labels of type date32"),
    ],
)
def test_labels_that_are_no_classes_are_refused(values: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        learn_labels(values, where="y")


@pytest.mark.parametrize(
    ("values", "measured"),
    [
        (np.arange(30) / 7, True),
        (np.arange(300) % 150, True),  # two rows of each number
        (np.arange(2000) % 100, False),  # twenty rows of each: a class
        (np.arange(40) % 10 / 2, False),  # grades in halves
        (np.arange(30), False),
        (np.array(["1.5", "2.5"] * 20), False),
        (np.array([True, False] * 20), False),
    ],
)
def test_a_measurement_is_told_from_classes_by_its_values(values: np.ndarray, measured: bool) -> None:
    found = learn_targets(values, where="y")
    assert found.measured is measured
    assert found.class_names == (None if measured else found.names)
    targets = found.targets(values, where="y")
    assert targets.dtype == (np.float64 if measured else np.int64)
    if measured:
        np.testing.assert_array_equal(targets, values)


def test_long_whole_numbers_in_text_stay_apart() -> None:
    codes = ["12345678901234567", "+12345678901234568", "-3"]  # which double precision cannot tell apart
    assert typed(pa.array(codes)).to_pylist() == [12345678901234567, 12345678901234568, -3]


def test_a_user_decides_what_a_number_is() -> None:
    grades = np.array([1, 2, 3, 3, 2, 1])
    np.testing.assert_array_equal(learn_targets(grades, where="y", regression=True).targets([2.5], where="y"), [2.5])
    assert learn_targets(np.arange(40) / 7 // 1, where="y", regression=False).measured is False
    with pytest.raises(UserError, match=r"y holds 'a', which is no number: regression needs numbers"):
        learn_targets(np.array(["a", "b"]), where="y", regression=True)
    with pytest.raises(UserError, match="every value is 2, but a measurement needs two or more"):
        learn_targets(np.array([2.0, 2.0]), where="y", regression=True)
    with pytest.raises(UserError, match="the value in data row 2 is not finite"):
        learn_targets(np.array([2.0, np.inf]), where="y", regression=True)
