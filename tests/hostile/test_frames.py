"""Data frames with every type of column and every kind of bad cell: encoded, filled, or refused by row and column."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from pinoise import PiNDA
from pinoise.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

ROWS = 16
NUMBERS = np.random.default_rng(0).normal(size=(ROWS, 3))
TYPES = [
    *(
        "float64",
        "float32",
        "Float64",
        "Float32",
        "double[pyarrow]",
        "Int64",
        "boolean",
        "object",
        "string",
        "category",
    ),
    "datetime",
]
BAD = {"NaN": np.nan, "None": None, "NA": pd.NA, "inf": np.inf, "-inf": -np.inf, "text": "x"}
NAMED = re.compile(r"row \d+.*('b'|feature 1)|column 'b'")


def column(kind: str) -> Any:
    if kind in ("string", "category"):
        return pd.Series(["u", "v"] * (ROWS // 2), dtype=kind)
    if kind == "datetime":
        return pd.Series(pd.date_range("2020", periods=ROWS))
    if kind == "boolean":
        return pd.Series(np.arange(ROWS) % 2 == 0, dtype=kind)
    return pd.Series(np.arange(ROWS) if kind == "Int64" else NUMBERS[:, 1]).astype(kind)


def frame(kind: str, bad: str | None = None) -> pd.DataFrame:
    """A frame whose column b is of this type and has a bad cell in row 4."""
    cells = column(kind)
    if bad is not None:
        try:
            cells.iloc[4] = BAD[bad]
        except (TypeError, ValueError):  # pandas keeps it out of this type
            cells = cells.astype(object)
            cells.iloc[4] = BAD[bad]
    return pd.DataFrame({"a": NUMBERS[:, 0], "b": cells, "c": NUMBERS[:, 2]})


def model() -> PiNDA:
    return PiNDA(4, hidden=8, epochs=1, random_state=0)


@pytest.mark.parametrize("verb", ["fit", "transform", "augment", "pipeline"])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", TYPES)
def test_a_bad_cell_is_encoded_or_named(kind: str, bad: str, verb: str) -> None:
    given = frame(kind, bad)
    labels = np.arange(ROWS) % 2
    try:
        if verb == "pipeline":
            found: Any = make_pipeline(model(), LogisticRegression()).fit(given, labels).predict_proba(given)
        elif verb == "fit":
            found = model().fit(given).transform(given)
        else:
            found = getattr(model().fit(frame(kind)), verb)(given)
    except UserError as error:
        assert NAMED.search(str(error)), error  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        if isinstance(found, pd.DataFrame):  # of augment, whose gaps stay gaps
            assert list(found) == list(given)
            numbers = found.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
            assert not np.isinf(numbers).any()
        else:
            assert np.isfinite(found).all()
        assert len(found) == ROWS
        assert "inf" not in bad or kind in ("boolean", "string", "category", "object")


@pytest.mark.parametrize("missing", ["NaN", "None", "NA"])
def test_missing_numbers_are_filled_with_the_median_of_training(missing: str) -> None:
    given = frame("object" if missing == "None" else "Float64", missing)
    filled = given.assign(b=NUMBERS[:, 1])
    filled.loc[4, "b"] = np.median(np.delete(NUMBERS[:, 1], 4))
    fitted = model().set_params(mark_missing=False).fit(given)
    np.testing.assert_array_equal(fitted.transform(given), fitted.transform(filled))


def test_an_arrow_table_with_nan_is_read_as_one_with_null() -> None:
    cells = NUMBERS[:, 1].tolist()
    tables = [pa.table({"a": NUMBERS[:, 0], "b": [*cells[:4], gap, *cells[5:]]}) for gap in (None, float("nan"))]
    first, second = (model().fit(table).transform(table) for table in tables)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("cell", [pd.NA, "x"])
def test_a_cell_of_an_array_of_objects_is_named(cell: object) -> None:
    given = NUMBERS.astype(object)
    given[3, 1] = cell
    for use in (model().fit, model().fit(NUMBERS).transform):
        with pytest.raises(UserError, match=r"in row 3 \(counted from 0\), feature 1"):
            use(given)
