"""Data frames with categories and missing values go the same way in Python and on the command line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pinoise import PiNDA, UserError
from pinoise.data import ReadOptions, open_source

SMALL: dict[str, Any] = {"n_components": 4, "hidden": 8, "epochs": 2, "batch_size": 64, "random_state": 0}


@pytest.fixture
def people() -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, 200),
            "town": random.choice(["Rome", "Oslo", "Bonn"], 200),
            "size": pd.Categorical(random.choice(list("SML"), 200)),
            "member": random.random(200) > 0.5,
        }
    )
    frame.loc[[3, 50], "age"] = np.nan
    return frame


@pytest.fixture
def model(people: pd.DataFrame) -> PiNDA:
    return fitted(people)


def fitted(X: Any, **changes: Any) -> PiNDA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PiNDA(**{**SMALL, **changes}).fit(X)


def test_an_index_that_was_written_to_a_file_is_no_feature_of_a_frame_of_numbers(tmp_path: Path) -> None:
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("abc"))
    numbers.sample(frac=1, random_state=0).to_csv(tmp_path / "a.csv")
    frame = pd.read_csv(tmp_path / "a.csv")
    model = fitted(frame)
    assert model.model_.preparation.encoding.feature_names == ("a", "b", "c")
    assert any(note.startswith("dropped the column 'Unnamed: 0', an index") for note in model.notes_)
    assert list(model.augment(frame, random_state=0)["Unnamed: 0"]) == list(frame["Unnamed: 0"])
    assert fitted(frame, keep=["Unnamed: 0"]).model_.preparation.encoding.feature_names == ("Unnamed: 0", "a", "b", "c")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"covariance": "differences", "neighbours": 0},
        {"covariance": "low-rank"},
        {"covariance": "diagonal", "neighbours": 0},
        {"objective": "paper", "mean": "learned"},
        {"scaling": "compressed"},
        {"scaling": "global"},
    ],
)
def test_a_category_is_augmented_to_a_category_also_by_a_saved_model(
    people: pd.DataFrame, changes: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(people, **changes)
    noisy = model.augment(people, random_state=1)
    assert list(noisy) == list(people)
    assert noisy.dtypes.to_dict() == people.dtypes.to_dict()
    assert set(noisy["town"]) == {"Rome", "Oslo", "Bonn"}
    assert 0 < (noisy["town"] != people["town"]).mean() < 0.7
    assert noisy["age"].isna().tolist() == people["age"].isna().tolist()
    assert (noisy["age"] != people["age"]).all()
    sigma = model.noise_scale(people)
    np.testing.assert_array_equal(sigma[:, 2:4], sigma[:, 3:5])
    model.save(tmp_path / "model")
    again = PiNDA.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.augment(people, random_state=1), noisy)
    np.testing.assert_array_equal(again.transform(people), model.transform(people))


def test_the_raw_part_of_an_embedding_counts_a_category_once(people: pd.DataFrame, model: PiNDA) -> None:
    raw = model.transform(people)[:, :10]
    spans = ((0, 1), (1, 2), (2, 5), (5, 8), (8, 10))
    np.testing.assert_allclose([raw[:, a:b].var(axis=0).sum() for a, b in spans], 1)


def test_a_frame_becomes_the_features_that_its_csv_file_becomes(
    people: pd.DataFrame, model: PiNDA, tmp_path: Path
) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    data, _ = open_source(tmp_path / "people.csv", ReadOptions())
    x = np.asarray(data.train.x)
    assert x.shape == (200, 10)  # age, whether it is missing, 3 towns, 3 sizes, member or not
    np.testing.assert_allclose(model.mean_, x.mean(axis=0))
    assert (model.n_features_in_, list(model.feature_names_in_)) == (4, ["age", "town", "size", "member"])
    assert model.transform(people).shape == (200, 10 + 4)
    assert list(model.get_feature_names_out()) == [*(data.feature_names or ()), *(f"pinda{i}" for i in range(4))]
    assert model.noise_scale(people).shape == (200, 10)


def test_a_frame_of_numbers_goes_the_way_of_an_array(people: pd.DataFrame) -> None:
    numbers = people[["age", "member"]].fillna(40).assign(other=np.arange(200.0))
    model, plain = fitted(numbers), fitted(numbers.to_numpy(dtype=float))
    np.testing.assert_array_equal(model.transform(numbers), plain.transform(numbers.to_numpy(dtype=float)))
    with pytest.raises(UserError, match=r"X has NaN in row 1 \(counted from 0\), feature 'age': fill or remove it"):
        model.transform(numbers.assign(age=[1.0, np.nan] * 100))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.drop(columns="age"), "X lacks 1 column of the training table: age"),
        (lambda frame: frame.assign(age="old"), "column 'age' holds numbers, but data row 1 holds 'old'"),
        (lambda frame: frame.to_numpy(), "X is an array, but training had a table with the columns age, town, size"),
    ],
)
def test_what_does_not_fit_the_frame_of_training_is_one_sentence(
    people: pd.DataFrame, model: PiNDA, change: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.transform(change(people))


def test_a_column_of_dates_becomes_days_and_cycles_as_on_the_command_line(people: pd.DataFrame) -> None:
    born = pd.Timestamp("2000-01-01") + pd.to_timedelta(np.arange(len(people)), unit="D")
    raw = fitted(people.assign(born=born)).get_feature_names_out()[10:15]
    assert raw.tolist() == ["born", "born:year_sin", "born:year_cos", "born:week_sin", "born:week_cos"]


def test_gaps_of_a_category_stay_gaps_and_no_cell_becomes_one(people: pd.DataFrame) -> None:
    people.loc[::5, "town"] = None
    noisy = fitted(people).augment(people, random_state=0)
    assert noisy["town"].isna().tolist() == people["town"].isna().tolist()
    assert set(noisy["town"].dropna()) == {"Rome", "Oslo", "Bonn"}


def test_an_augmented_frame_has_dates_whole_numbers_and_what_carries_no_feature(people: pd.DataFrame) -> None:
    day = pd.Timestamp("2000-01-01") + pd.to_timedelta(np.arange(200) * 7 % 500, unit="D")
    frame = people.assign(born=day, children=np.arange(200) % 4, key=[f"k{i}" for i in range(200)])
    frame.index += 1000
    noisy = fitted(frame).augment(frame, random_state=0)
    assert noisy.index.equals(frame.index)
    assert noisy["key"].tolist() == frame["key"].tolist()
    assert noisy["children"].dtype == frame["children"].dtype
    assert (noisy["born"] == noisy["born"].dt.normalize()).all()
    assert (noisy["born"] != frame["born"]).mean() > 0.5


def test_lazy_frames_streams_and_plain_numbers_come_back_as_frames(people: pd.DataFrame) -> None:
    import polars as pl
    import pyarrow as pa

    table = pa.Table.from_pandas(people, preserve_index=False)
    expected = fitted(table)
    polars: Any = pl.from_arrow(table)
    for make, names in ((lambda: polars.lazy(), "columns"), (lambda: table.to_reader(), "column_names")):
        lazy: Any = make  # every call gives another stream
        model = fitted(lazy())
        np.testing.assert_array_equal(model.transform(lazy()), expected.transform(table))
        assert list(getattr(model.augment(lazy(), random_state=0), names)) == list(people)
    numbers = people[["member"]].assign(n=np.arange(200), x=np.arange(200) / 7)
    noisy = fitted(numbers).augment(numbers, random_state=0)
    assert noisy.dtypes.to_dict() == numbers.dtypes.to_dict()


def test_gaps_of_an_array_are_filled_marked_and_kept(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    x[::9, 1] = np.nan
    model = fitted(x)
    assert model.transform(x).shape == (200, 4 + 4)
    assert list(model.get_feature_names_out())[:4] == ["x0", "x1", "x2", "x1=missing"]
    assert "filled 23 missing values" in model.notes_[0]
    noisy = model.augment(x)
    np.testing.assert_array_equal(np.isnan(noisy), np.isnan(x))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(PiNDA.load(tmp_path / "model").transform(x), model.transform(x))
    for same in (x.tolist(), torch.tensor(x)):
        np.testing.assert_array_equal(fitted(same).transform(same), model.transform(x))
    assert fitted(x, mark_missing=False).transform(x).shape == (200, 3 + 4)
    with pytest.raises(UserError, match=r"X has NaN in row 0 \(counted from 0\), feature 1"):
        fitted(x, missing="error")


def test_a_path_is_told_from_data() -> None:
    with pytest.raises(UserError, match=r"X is 'a\.csv', the name of a file: read it first, as with pandas\.read_csv"):
        PiNDA().fit("a.csv")
