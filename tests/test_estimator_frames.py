"""Data frames with categories and missing values go the same way in Python and on the command line."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

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
    for start, stop in ((1, 4), (4, 7), (7, 9)):
        np.testing.assert_allclose(np.sort(noisy[:, start:stop], axis=1)[:, :-1], 0, atol=1e-4)
        np.testing.assert_allclose(noisy[:, start:stop].sum(axis=1), 1, atol=1e-4)
    towns = pd.get_dummies(people["town"]).to_numpy(float)
    assert 0 < np.abs(noisy[:, 1:4] - towns).max(axis=1).round().mean() < 0.7
    sigma = model.noise_scale(people)
    np.testing.assert_array_equal(sigma[:, 1:3], sigma[:, 2:4])
    model.save(tmp_path / "model.safetensors")
    again = PiNDA.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.augment(people, random_state=1), noisy)
    np.testing.assert_array_equal(again.transform(people), model.transform(people))


def test_the_raw_part_of_an_embedding_counts_a_category_once(people: pd.DataFrame, model: PiNDA) -> None:
    raw = model.transform(people)[:, :9]
    np.testing.assert_allclose([raw[:, a:b].var(axis=0).sum() for a, b in ((0, 1), (1, 4), (4, 7), (7, 9))], 1)


def test_a_frame_becomes_the_features_that_its_csv_file_becomes(
    people: pd.DataFrame, model: PiNDA, tmp_path: Path
) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    data, _ = open_source(tmp_path / "people.csv", ReadOptions())
    x = np.asarray(data.train.x)
    assert x.shape == (200, 9)  # age, 3 towns, 3 sizes, member or not
    np.testing.assert_allclose(model.mean_, x.mean(axis=0))
    assert (model.n_features_in_, list(model.feature_names_in_)) == (4, ["age", "town", "size", "member"])
    assert model.transform(people).shape == (200, 9 + 4)
    assert list(model.get_feature_names_out()) == [*(data.feature_names or ()), *(f"pinda{i}" for i in range(4))]
    assert model.augment(people).shape == model.noise_scale(people).shape == (200, 9)


def test_columns_are_found_by_name_and_later_gaps_are_filled(people: pd.DataFrame, model: PiNDA) -> None:
    expected = model.transform(people)
    gap = people.copy()
    gap.loc[7, "age"] = np.nan
    found = model.transform(gap)
    assert not np.array_equal(found[7], expected[7])
    np.testing.assert_array_equal(np.delete(found, 7, axis=0), np.delete(expected, 7, axis=0))
    np.testing.assert_array_equal(model.transform(people.iloc[:5]), expected[:5])


def test_a_model_of_a_frame_is_copied_pickled_and_saved(people: pd.DataFrame, model: PiNDA, tmp_path: Path) -> None:
    expected = model.transform(people)
    model.save(tmp_path / "model.safetensors")
    for again in (pickle.loads(pickle.dumps(model)), PiNDA.load(tmp_path / "model.safetensors")):
        np.testing.assert_array_equal(again.transform(people), expected)
        assert list(again.feature_names_in_) == list(model.feature_names_in_)
        assert again.n_features_in_ == 4
    np.testing.assert_array_equal(fitted(people, **clone(model).get_params()).transform(people), expected)


def test_a_frame_goes_through_a_pipeline(people: pd.DataFrame) -> None:
    y = people["member"].astype(int)
    pipeline = make_pipeline(PiNDA(**{**SMALL, "epochs": 5}), LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pipeline.fit(people, y).score(people, y) > 0.9  # member is among the features


def test_a_frame_of_numbers_goes_the_way_of_an_array(people: pd.DataFrame) -> None:
    numbers = people[["age", "member"]].fillna(40).assign(other=np.arange(200.0))
    model, plain = fitted(numbers), fitted(numbers.to_numpy(dtype=float))
    np.testing.assert_array_equal(model.transform(numbers), plain.transform(numbers.to_numpy(dtype=float)))
    with pytest.raises(UserError, match=r"X has NaN in row 1 \(counted from 0\), feature 'age': fill or remove it"):
        model.transform(numbers.assign(age=[1.0, np.nan] * 100))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.drop(columns="age"), "feature names should match"),
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
    raw = fitted(people.assign(born=born)).get_feature_names_out()[9:14]
    assert raw.tolist() == ["born", "born:year_sin", "born:year_cos", "born:week_sin", "born:week_cos"]
