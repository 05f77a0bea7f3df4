from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from pinoise.data.dataset import Targets
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import TablePreparation, preparation_from_json
from pinoise.data.table.batches import held_table
from pinoise.data.table.encoding import TableEncoder, TableEncoding, learn_table
from pinoise.errors import UserError


def learned(columns: dict[str, Any], **options: Any) -> tuple[TableEncoding, tuple[str, ...]]:
    encoding, table = learn_table(held_table(pa.table(columns), where="a.csv"), ReadOptions(**options))
    return encoding, table.notes


class Applied(NamedTuple):
    x: npt.NDArray[np.float64]
    y: Targets | None
    notes: tuple[str, ...]


def applied(encoding: TableEncoding, table: Any, *, labelled: bool = True) -> Applied:
    data = encoding.apply(held_table(table, where="b.csv"), name="b", labelled=labelled)
    return Applied(np.asarray(data.train.x), data.train.y, data.notes)


def test_numbers_of_every_kind_become_float64() -> None:
    table = pa.table(
        {
            "i": pa.array([1, 2], pa.int8()),
            "u": pa.array([2**63, 1], pa.uint64()),
            "d": pa.array([Decimal("1.5"), Decimal("2.25")]),
            "h": pa.array(np.array([0.5, 1.5], dtype=np.float16)),
        }
    )
    x = applied(learn_table(held_table(table, where="a.csv"), ReadOptions())[0], table).x
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, np.array([[1, 2.0**63, 1.5, 0.5], [2, 1, 2.25, 1.5]]))


def test_text_truth_values_and_dictionaries_become_one_feature_per_value() -> None:
    columns = {"t": ["b", "a"], "f": [True, False], "d": pa.array(["1", "2"]).dictionary_encode()}
    encoding, notes = learned(columns)
    assert encoding.feature_names == ("t=a", "t=b", "f=false", "f=true", "d=1", "d=2")
    np.testing.assert_array_equal(applied(encoding, pa.table(columns)).x, [[0, 1, 0, 1, 1, 0], [1, 0, 1, 0, 0, 1]])
    assert notes == ()


def test_listed_numeric_columns_become_categories() -> None:
    encoding, _ = learned({"zip": [7, 5, 7], "n": [1, 2, 3]}, categorical=["zip"])
    assert encoding.feature_names == ("zip=5", "zip=7", "n")


@pytest.mark.parametrize(("missing", "expected"), [("median", 2.0), ("mean", 4.0), ("zero", 0.0)])
def test_missing_numbers_are_filled_as_the_policy_says(missing: str, expected: float) -> None:
    columns = {"a": [1.0, 2.0, 9.0, None, float("nan")]}
    encoding, _ = learned(columns, missing=missing)
    done = applied(encoding, pa.table(columns))
    assert done.x[3:, 0].tolist() == [expected, expected]
    assert done.x[:, 1].tolist() == [0, 0, 0, 1, 1]
    assert encoding.feature_names == ("a", "a=missing")
    filled = "zero" if missing == "zero" else f"its {missing}"
    assert done.notes == (f"filled 2 missing values in 1 column with {filled}: a, and marked those of a",)


def test_gaps_are_marked_from_one_percent_on_unless_the_user_says_no() -> None:
    for gaps, marked in ((1, False), (2, True)):
        columns = {"a": [None] * gaps + list(np.arange(199.0 - gaps) ** 2), "b": [0.5, 1.5, 2.5] * 66 + [0.5]}
        assert learned(columns)[0].feature_names == (("a", "a=missing", "b") if marked else ("a", "b"))
        assert learned(columns, mark_missing=False)[0].feature_names == ("a", "b")


def test_the_policy_error_names_the_first_missing_cell() -> None:
    for columns in ({"a": [1.0, None]}, {"a": ["x", None]}):
        encoding, _ = learned(columns, missing="error")
        with pytest.raises(UserError, match=r"b\.csv: column 'a', data row 2 is missing"):
            applied(encoding, pa.table(columns))


def test_a_missing_category_is_a_category() -> None:
    columns = {"a": ["x", None, "", "y"]}
    encoding, _ = learned(columns)
    done = applied(encoding, pa.table(columns))
    assert encoding.feature_names == ("a=x", "a=y", "a=missing")
    assert done.x[:, 2].tolist() == [0, 1, 1, 0]
    assert done.notes == ("2 missing cells in 1 column became the category 'missing': a",)


def test_a_value_called_missing_is_the_same_as_a_missing_one() -> None:
    columns = {"a": ["x", None, "missing"]}
    encoding, _ = learned(columns)
    assert encoding.feature_names == ("a=missing", "a=x")
    assert applied(encoding, pa.table(columns)).x.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_columns_without_values_and_constant_columns_are_noted() -> None:
    columns = {"n": [None, None], "f": [float("nan")] * 2, "c": [7, 7], "t": ["x", "x"], "ok": [1, 2]}
    encoding, notes = learned(columns)
    assert encoding.feature_names == ("c", "t=x", "ok")
    assert encoding.dropped == ("n", "f")
    assert notes == ("dropped 2 columns without any value: n, f", "2 columns are constant: c, t")


def test_an_identifier_is_dropped_with_a_note() -> None:
    encoding, notes = learned({"id": [f"u{i}" for i in range(100)], "n": [0, 1] * 50})
    assert encoding.feature_names == ("n",)
    assert notes == (
        "dropped the column 'id': nearly all of its 100 values differ, as in an identifier or free text; --keep id "
        "(keep=['id']) keeps it, and --text id (text=['id']) makes features of its words",
    )


@pytest.mark.parametrize(("rows", "passes"), [(1000, 1), (300_000, 2)])
def test_a_column_of_names_that_all_differ_takes_no_pass_of_its_own(rows: int, passes: int) -> None:
    numbers = pa.array(np.arange(rows))
    stream = held_table(pa.table({"key": numbers.cast(pa.string()), "n": np.arange(rows) % 7}), where="toy")
    asked: list[tuple[str, ...]] = []

    def read(columns: Sequence[str]) -> Any:
        asked.append(tuple(columns))
        return stream.read(columns)

    encoding, table = learn_table(replace(stream, read=read), ReadOptions(categorical=("key",)))
    assert sum(map(len, TableEncoder(encoding, table).blocks())) == rows
    assert len(asked) == passes


def test_rare_values_beyond_the_limit_are_put_together() -> None:
    values = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d"] * 2 + ["e"]
    encoding, notes = learned({"t": values}, max_categories=3)
    assert encoding.feature_names == ("t=a", "t=b", "t=c", "t=other")
    done = applied(encoding, pa.table({"t": ["d", "e", "never seen", "b"]}))
    assert done.x.tolist() == [[0, 0, 0, 1]] * 3 + [[0, 1, 0, 0]]
    assert done.notes == ()
    assert notes == ("kept the 3 most frequent values of column 't'; the rest is 't=other'",)


def test_the_row_number_that_a_data_frame_saves_is_dropped() -> None:
    encoding, notes = learned({"Unnamed: 0": [0, 1, 2], "n": [1, 5, 2]})
    assert encoding.feature_names == ("n",)
    assert notes == (
        "dropped the column 'Unnamed: 0', an index: it has no name, and its whole numbers all differ; --keep "
        "'Unnamed: 0' (keep=['Unnamed: 0']) keeps it",
    )
    shuffled = {"Unnamed: 0": [7, 1, 3], "n": [1, 5, 2]}
    assert learned(shuffled)[0].feature_names == ("n",)
    assert learned(shuffled, keep=["Unnamed: 0"])[0].feature_names == ("Unnamed: 0", "n")
    for kept in ({"n": [1, 5, 2], "Unnamed: 1": [7, 1, 3]}, {"Unnamed: 0": [7, 1, 1], "n": [1, 5, 2]}):
        assert learned(kept)[0].feature_names == tuple(kept)  # not the first column, and not all different


@pytest.mark.parametrize("cell", ["12a", "?", "1,5"])
def test_a_column_of_numbers_with_stray_text_is_refused_with_its_cell(cell: str) -> None:
    with pytest.raises(UserError) as caught:
        learned({"a": ["1", "-2.5e3", None, cell, ".5", *map(str, range(2, 30))]})
    assert f"a.csv: column 'a' holds numbers, but data row 4 holds {cell!r}" in str(caught.value)
    learned({"a": ["1", "2", cell]}, categorical=["a"])


def test_few_values_some_of_them_no_numbers_are_a_category() -> None:
    encoding, notes = learned({"doors": ["2", "3", "4", "5more"] * 5})
    assert encoding.feature_names == ("doors=2", "doors=3", "doors=4", "doors=5more")
    assert notes == ("took column 'doors' for categories: 5more is no number",)


def test_whole_numbers_with_zeros_before_them_are_names() -> None:
    codes = ["00123", "90210", "10001", "00123"] * 10
    encoding, notes = learned({"zip": codes, "n": np.arange(40) % 7})
    assert encoding.feature_names == ("zip=00123", "zip=10001", "zip=90210", "n")
    assert notes == ()


def test_cells_that_mean_missing_are_named_exactly() -> None:
    columns = {"a": ["1", "?", "3", "unknown"] * 9, "t": ["x", "?", "y", "?"] * 9, "n": [-999, 5, 7, 9] * 9}
    encoding, notes = learned(columns, na=["?", "unknown", "-999"], mark_missing=False)
    assert encoding.feature_names == ("a", "t=x", "t=y", "t=missing", "n")
    assert not any("--na" in note for note in notes)
    assert applied(encoding, pa.table(columns)).x[:4, [0, 4]].tolist() == [[1, 7], [2, 5], [3, 7], [2, 9]]
    _, notes = learned({"t": ["x", "?", "y", "?"] * 9, "n": list(range(36))})
    assert notes == ("column 't' has '?' in 18 cells: --na '?' (na=['?']) makes them missing",)


def test_text_with_some_numbers_stays_text_and_text_of_numbers_becomes_numbers() -> None:
    assert learned({"a": ["1", "x", "y"]})[0].feature_names == ("a=1", "a=x", "a=y")
    encoding, notes = learned({"a": ["1", " 2.5", "+3"]})
    assert applied(encoding, pa.table({"a": ["1", " 2.5", "+3"]})).x[:, 0].tolist() == [1.0, 2.5, 3.0]
    assert notes == ("read the text of 1 column as numbers: a",)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([datetime.timedelta(1)]), "duration"),
        (pa.array([[1, 2]]), "list"),
        (pa.array([{"x": 1}]), "struct"),
    ],
)
def test_durations_and_nested_values_are_refused_and_can_be_dropped(values: Any, kind: str) -> None:
    columns = {"when": values, "n": [1]}
    with pytest.raises(UserError, match=rf"a\.csv: column 'when' is of type {kind}.*drop the column"):
        learned(columns)
    assert learned(columns, drop=["when"])[0].feature_names == ("n",)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UserError, match="column 'a' is of type binary, which is neither a number nor a category"):
        learned({"a": [b"\xff"]})


def test_an_infinite_value_is_named_in_training_and_later() -> None:
    with pytest.raises(UserError, match=r"a\.csv: column 'a', data row 2 holds inf, which is too large"):
        learned({"a": [1.0, float("inf")]})
    encoding, _ = learned({"a": [1.0, 2.0]})
    with pytest.raises(UserError, match=r"b\.csv: column 'a', data row 1 holds -inf, which is too large"):
        applied(encoding, pa.table({"a": [-float("inf")]}))
    with pytest.raises(UserError, match=r"data row 1 holds 1e\+300, which is too large"):
        applied(encoding, pa.table({"a": [1e300]}))


def test_the_label_is_found_by_name_and_by_number() -> None:
    columns = {"a": [1, 2, 3], "y": ["no", "yes", "no"]}
    for label in ("y", 1, -1):
        encoding, _ = learned(columns, label=label)
        done = applied(encoding, pa.table(columns))
        assert encoding.feature_names == ("a",)
        assert done.y is not None
        assert done.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"age": [1], "class": [1]}, {"label": "clas"}, "unknown column of a.csv 'clas': did you mean 'class'"),
        ({"age": [1], "class": [1]}, {"label": 2}, "a.csv has 2 columns: there is no column 2"),
        ({"a": [1, 2], "y": ["x", None]}, {"label": "y"}, "label column 'y': the label of data row 2 is missing"),
        ({"a": [1, 2], "y": ["x", "x"]}, {"label": "y"}, "label column 'y': every label is 'x'"),
        ({"y": ["x", "z"]}, {"label": "y"}, "no feature column left: it holds only the label"),
        ({"a": [None], "b": [1]}, {"drop": ["b"]}, "no feature column left: dropped 1 column without any value: a"),
        ({"a": [1]}, {"drop": ["b"]}, "unknown column of a.csv 'b'"),
        ({"a": [1]}, {"categorical": ["b"]}, "unknown column of a.csv 'b'"),
        ({"a": [1]}, {"missing": "medain"}, "unknown policy for missing values 'medain': did you mean 'median'"),
        ({"a": [1]}, {"max_categories": 0}, "max_categories is 0"),
        ({"a": pa.array([], pa.int8())}, {}, "a.csv has no rows"),
    ],
)
def test_mistakes_in_training_are_explained(columns: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        learned(columns, **options)
    assert message in str(caught.value)


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(UserError, match="more than one column called 'a'"):
        learn_table(held_table(table, where="a.csv"), ReadOptions())


@pytest.fixture
def encoding() -> TableEncoding:
    table = pa.table({"n": [1.0, 2.0, 3.0], "t": ["a", "b", "a"], "f": [True, False, True], "y": ["p", "q", "p"]})
    encoding = learn_table(held_table(table, where="a.csv"), ReadOptions(label="y"))[0]
    stored = preparation_from_json(json.loads(json.dumps(TablePreparation(encoding).to_json())))
    assert isinstance(stored, TablePreparation)
    return stored.encoding


def test_columns_are_found_by_name_in_any_order_and_the_label_may_be_absent(encoding: TableEncoding) -> None:
    done = applied(encoding, pa.table({"f": [False], "t": ["b"], "n": [5]}))
    assert done.x.tolist() == [[5, 0, 1, 1, 0]]
    assert done.y is None
    assert done.notes == ()


def test_labels_can_be_left_unread(encoding: TableEncoding) -> None:
    table = pa.table({"n": [5, 6], "t": ["b", "b"], "f": [True, True], "y": ["new", None]})
    with pytest.raises(UserError, match="data row 2 is missing"):
        applied(encoding, table)
    assert applied(encoding, table, labelled=False).y is None


def test_missing_columns_are_listed(encoding: TableEncoding) -> None:
    with pytest.raises(UserError, match=r"b\.csv lacks 2 columns of the training table: t, f"):
        applied(encoding, pa.table({"n": [1]}))


def test_what_training_did_not_have_is_ignored_or_zero_with_a_note(encoding: TableEncoding) -> None:
    done = applied(encoding, pa.table({"n": [5, None], "t": ["zebra", None], "f": [True, None], "more": [1, 2]}))
    assert done.x.tolist() == [[5, 0, 0, 0, 1], [2, 0, 0, 0, 0]]
    assert done.notes == (
        "ignored 1 column that training did not have: more",
        "column 't': 2 cells with values that training did not have (zebra, missing) became all zeros",
        "column 'f': 1 cell with values that training did not have (missing) became all zeros",
        "filled 1 missing value in 1 column with its median: n",
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": ["1", "x"]}, "column 'n' holds numbers, but data row 2 holds 'x'"),
        ({"n": [True, False]}, "column 'n' held numbers in training and holds bool here"),
        ({"t": [datetime.date(2020, 1, 1)] * 2}, "column 't' held text in training and holds date32"),
        ({"f": ["a", "b"]}, "column 'f' held true / false in training and holds string here"),
        ({"f": [0, 1]}, "column 'f' held true / false in training and holds int64 here"),
    ],
)
def test_a_column_that_changed_its_type_is_refused(
    encoding: TableEncoding, changed: dict[str, Any], message: str
) -> None:
    table = pa.table({"n": [1, 2], "t": ["a", "b"], "f": [True, False], **changed})
    with pytest.raises(UserError) as caught:
        applied(encoding, table)
    assert str(caught.value).startswith("b.csv: ")
    assert message in str(caught.value)


def test_a_column_whose_later_cells_are_all_missing_is_read(encoding: TableEncoding) -> None:
    done = applied(encoding, pa.table({"n": pa.nulls(1), "t": pa.nulls(1), "f": pa.nulls(1)}))
    assert done.x.tolist() == [[2, 0, 0, 0, 0]]
