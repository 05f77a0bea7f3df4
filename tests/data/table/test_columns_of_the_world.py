"""Dates, amounts, decimal commas, text, ids and Latin-1: what each column becomes."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from pinoise.data import ReadOptions, from_arrays, read_file
from pinoise.data.preparation import preparation_from_json
from pinoise.errors import UserError


def features_of(table: dict[str, Any], **options: Any) -> dict[str, list[float]]:
    data, _ = from_arrays(pa.table(table), options=ReadOptions(**options))
    return dict(zip(data.feature_names or (), np.asarray(data.train.x).T.tolist(), strict=True))


def test_a_date_becomes_days_and_places_on_circles() -> None:
    moments = [datetime.datetime(2024, 1, 1, 6), datetime.datetime(2024, 7, 3, 18), None]
    found = features_of({"when": moments})
    assert list(found) == ["when", *(f"when:{c}_{a}" for c in ("year", "week", "day") for a in ("sin", "cos"))]
    epoch = datetime.datetime(1970, 1, 1)
    days = [(moment - epoch) / datetime.timedelta(days=1) for moment in moments if moment]
    assert found["when"] == pytest.approx([*days, sum(days) / 2])
    weekday = [2 * np.pi * moment.weekday() / 7 for moment in moments if moment]
    np.testing.assert_allclose(found["when:week_sin"][:2], np.sin(weekday), atol=1e-9)
    np.testing.assert_allclose(found["when:day_sin"][:2], [1, -1], atol=1e-9)
    np.testing.assert_allclose(np.square(found["when:year_sin"]) + np.square(found["when:year_cos"]), 1)


def test_the_pairs_of_a_date_move_together_and_its_number_alone() -> None:
    dates = [datetime.date(2024, month, 5) for month in range(1, 13)]
    data, preparation = from_arrays(pa.table({"x": list(range(12)), "when": dates}))
    assert data.spans == ((2, 4), (4, 6))
    stored = preparation_from_json(preparation.to_json())
    later = stored.read(pa.table({"when": ["2024-03-05"], "x": [1]})).train.x
    np.testing.assert_allclose(np.asarray(later)[0], np.asarray(data.train.x)[2] + [-1, *[0] * 5])
    with pytest.raises(UserError, match="holds dates, but data row 1 holds 'soon'"):
        stored.read(pa.table({"when": ["soon"], "x": [1]}))


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,000.50", "-$3", "$20"], [1000.5, -3, 20]),
        (["12 %", "7%", "5.5 %"], [12, 7, 5.5]),
        (["1,5", "2,25", "3"], [1.5, 2.25, 3]),
        (["1.000,50 €", "7 €", "3,1 €"], [1000.5, 7, 3.1]),
    ],
)
def test_amounts_percentages_and_decimal_commas_are_numbers(cells: list[str], numbers: list[float]) -> None:
    assert features_of({"x": cells})["x"] == pytest.approx(numbers)


def test_a_file_with_semicolons_commas_and_latin_letters_is_read_with_notes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe;stadt;y\n1,5;Köln;a\n2,5;Zürich;b\n1.000,5;Köln;a\n".encode("latin-1"))
    data, preparation = read_file(path, ReadOptions(label="y"))
    assert data.feature_names == ("größe", "stadt=Köln", "stadt=Zürich")
    assert np.asarray(data.train.x)[:, 0].tolist() == [1.5, 2.5, 1000.5]
    assert "read as Latin-1 (Windows-1252), because it is not UTF-8" in data.notes
    assert "took the commas in the numbers of column 'größe' for decimal points" in data.notes
    path.write_text("größe;stadt\n1.234;Köln\n", encoding="utf-8")  # which alone would be 1.234
    assert np.asarray(preparation.read(path).train.x)[0, 0] == 1234


def test_text_becomes_what_scikit_learn_makes_of_it() -> None:
    cells = ["good wine here", "bad wine again", "good bread", None]
    data, preparation = from_arrays(pa.table({"note": cells, "x": [1, 2, 3, 5]}), options=ReadOptions(text=("note",)))
    expected = TfidfVectorizer(min_df=2).fit_transform([cell or "" for cell in cells]).toarray()
    np.testing.assert_allclose(np.asarray(data.train.x)[:, :2], expected)
    assert data.spans == ((0, 2),)
    again = preparation_from_json(preparation.to_json()).read(pa.table({"note": ["good good new"], "x": [1]}))
    np.testing.assert_allclose(np.asarray(again.train.x), [[1, 0, 1]])


def test_numbers_that_name_rows_are_dropped_and_can_be_kept() -> None:
    random = np.random.default_rng(0)
    table = {
        "order": random.permutation(100),
        "card": random.integers(4 * 10**15, 9 * 10**15, 100),
        "user_id": random.choice(10**6, 100, replace=False),
        "age": random.integers(18, 90, 100),
    }
    assert list(features_of(table)) == ["age"]
    assert list(features_of(table, keep=("card", "order"))) == ["order", "card", "age"]


def test_honest_whole_numbers_stay() -> None:
    random = np.random.default_rng(0)
    table = {
        "price": random.choice(10**6, 100, replace=False),  # all different
        "seconds": 1_700_000_000 + random.choice(10**6, 100, replace=False),
        "micros": 1_700_000_000_000_000 + random.choice(10**9, 100, replace=False),
        "group_id": random.integers(0, 5, 100),  # repeats
        "even": 2 * np.arange(100),
        "paid": random.integers(0, 2, 100),
    }
    assert list(features_of(table)) == list(table)
    assert list(features_of({"x": list(range(20)), "y": [1.5, 2.5] * 10})) == ["x", "y"]  # few rows
