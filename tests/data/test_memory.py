from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from pinoise.data.dataset import Dataset
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import TablePreparation
from pinoise.data.readers import from_arrays, read_file
from pinoise.errors import UserError


def frame() -> Any:
    return pd.DataFrame(
        {
            "age": [20, None, 40, 33],
            "town": pd.Categorical(["Rome", "Oslo", None, "Rome"]),
            "name": ["ann", "bob", "cid", None],
            "member": [True, False, True, True],
            "size": np.array([1, 2, 3, 4], dtype=np.uint8),
            "class": ["x", "y", "y", "x"],
        }
    )


def same(left: Dataset, right: Dataset) -> None:
    np.testing.assert_array_equal(np.asarray(left.train.x), np.asarray(right.train.x))
    np.testing.assert_array_equal(np.asarray(left.train.y), np.asarray(right.train.y))
    assert left.feature_names == right.feature_names
    assert left.class_names == right.class_names
    assert left.notes == right.notes


def test_a_data_frame_is_read_like_a_csv_or_parquet_file_of_its_content(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().to_parquet(tmp_path / "a.parquet")
    data, preparation = from_arrays(frame(), options=ReadOptions(label="class"))
    assert data.feature_names is not None
    assert "town=missing" in data.feature_names
    for name in ("a.csv", "a.parquet"):
        read, learned = read_file(tmp_path / name, ReadOptions(label="class"))
        same(data, read)
        assert learned == preparation


class Stream:
    """A data frame of a library that hands out an Arrow stream."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.columns = table.column_names

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class ToArrow:
    """A data frame that converts itself, as polars' does."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.columns = table.column_names

    def to_arrow(self) -> Any:
        return self.table


@pytest.mark.parametrize("wrap", [lambda table: table, Stream, ToArrow])
def test_data_frames_of_other_libraries(wrap: Any) -> None:
    table = pa.table({"a": [1.0, 2.0], "t": ["x", "y"], "y": [0, 1]})
    data, preparation = from_arrays(wrap(table), options=ReadOptions(label="y"))
    assert isinstance(preparation, TablePreparation)
    assert np.asarray(data.train.x).tolist() == [[1, 1, 0], [2, 0, 1]]


def test_column_names_that_are_numbers_become_text_and_the_index_is_left_out() -> None:
    data, _ = from_arrays(pd.DataFrame(np.eye(2), index=["p", "q"]))
    assert data.feature_names == ("0", "1")


X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    "given",
    [X, X.tolist(), torch.tensor(X), torch.tensor(X, requires_grad=True), torch.tensor(X).bfloat16(), X.astype(object)],
)
def test_arrays_tensors_and_lists_hold_the_same_samples(given: object) -> None:
    data, _ = from_arrays(given, [1, 0, 1])
    np.testing.assert_array_equal(np.asarray(data.train.x), X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_matrices_of_every_layout_become_rows(layout: str, kind: Any) -> None:
    x = from_arrays(kind(X).asformat(layout))[0].train.x
    assert isinstance(x, sp.csr_array)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x.toarray(), X)


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b"],
        ("b", "a", "b"),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.DataFrame({"y": ["b", "a", "b"]}),
        pa.array(["b", "a", "b"]),
        torch.tensor([7, 3, 7]),
        np.array([[1], [0], [1]]),
        [True, False, True],
    ],
)
def test_labels_of_every_kind(y: object) -> None:
    for samples in (X, pd.DataFrame(X)):
        assert np.asarray(from_arrays(samples, y)[0].train.y).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("given", "y", "options", "message"),
    [
        ([[1, 2], [3]], None, {}, "rows of different lengths"),
        ([["a", "b"]], None, {}, "samples must be numbers"),
        ([1, 2], None, {}, "at least two axes"),
        (X, [0, 1], {}, "array has 3 rows but 2 labels"),
        (pd.DataFrame(X), [0, 1], {}, "array has 3 rows but 2 labels"),
        (X, [0, 1, 0], {"label": 0}, "labels were given twice"),
        (X, 5, {}, "one value for each row"),
        (X, ["a", None, "b"], {}, "label of data row 2 is missing"),
        (X, None, {"categorical": ["a"]}, "no named columns, so categorical="),
        (torch.eye(3).to_sparse(), None, {}, "sparse tensor"),
        (np.ma.masked_equal(X, 3.0), None, {}, "masked values"),
        (pd.DataFrame({"a": [1, "x"]}), None, {}, "column 'a' cannot be read ("),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), None, {}, "more than one column called 'a'"),
    ],
)
def test_mistakes_are_explained(given: object, y: object, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        from_arrays(given, y, ReadOptions(**options))
    assert message in str(caught.value)
