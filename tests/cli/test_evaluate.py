"""What ``pinoise evaluate`` says, and what it leaves in the folder of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pinoise.data.dataset import split
from pinoise.data.options import ReadOptions
from pinoise.data.readers import read_file

Command = Callable[..., Any]


def test_evaluate_keeps_the_information_of_the_same_state(pinoise: Command, digits_run: Path) -> None:
    asked = ["evaluate", digits_run, "--rows", 200, "--json"]
    before = json.loads(pinoise(*asked, "--information", "--draws", 2).out)
    again = json.loads(pinoise(*asked, "--seed", 1).out)
    assert again["information"] == before["information"]
    assert again["scores"]["learned"]["few_draws"] != before["scores"]["learned"]["few_draws"]
    assert json.loads((digits_run / "evaluation.json").read_text()) == again
    assert pinoise("train", "--resume", digits_run, "--epochs", 3).code == 0
    assert "information" not in json.loads(pinoise(*asked).out)  # the weights are others now


def test_raw_features_of_one_folder_score_the_same_beside_every_encoder(
    pinoise: Command, folder: Path, tiny: list[str]
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    images[:, :, :4] //= np.arange(1, 5, dtype=np.uint8)[:, None]  # pixels of different spread
    np.savez("x.npz", X=images, y=np.arange(60) % 3)
    small = ["--set", "encoder.width=4", "--epochs", 1, "--batch-size", 16]
    assert pinoise("train", "--data", "x.npz", "--out", "vectors", *tiny).code == 0
    assert pinoise("train", "--data", "x.npz", "--out", "pictures", "--encoder", "resnet18", *small).code == 0
    one, other = (json.loads(pinoise("evaluate", run, "--json").out)["scores"] for run in ("vectors", "pictures"))
    assert one["raw"] == other["raw"]
    assert one["learned"] != other["learned"]


def test_a_number_to_predict_is_evaluated_by_r_squared(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    x, y = load_diabetes(return_X_y=True)
    lines = [",".join(map(str, [*row, value])) for row, value in zip(x, y, strict=True)]
    Path("x.csv").write_text("\n".join([",".join([*"abcdefghij", "progression"]), *lines]) + "\n")
    asked = ["train", "--data", "x.csv", "--label", "progression", "--batch-size", 64]
    trained = pinoise(*asked, "--out", "run", *tiny)
    assert "the label 'progression' is taken for a measurement, scored by R²" in trained.err
    result = pinoise("evaluate", "run")
    assert re.search(r"R² \(%\) +kNN R² +ridge R² +few-label R²", result.out)
    assert "with 50 known values, R² is" in result.out
    scores = json.loads(Path("run/evaluation.json").read_text())["scores"]
    data = split(read_file("x.csv", ReadOptions(label="progression"))[0])
    assert data.test is not None
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))).fit(data.train.x, data.train.y)
    assert scores["raw"]["lr"] == pytest.approx(ridge.score(data.test.x, data.test.y), abs=1e-3)
    sentence = pinoise("train", "--data", "wine", "--regression", "--out", "wine", *tiny).sentence
    assert sentence == "regression is true, but the data set 'wine' has classes as labels."


@pytest.fixture
def wine_files(folder: Path) -> None:
    """A table of wine, and one with the columns that a later export would have beside it."""
    wine = load_wine(as_frame=True)
    table = wine.data.assign(kind=[f"k{kind}" for kind in wine.target])
    table.to_csv("wine.csv", index=False)
    later = table.assign(grade=np.arange(len(table)) % 12, when="2024-05-01")
    later.insert(0, "id", [f"A-{row:04d}" for row in range(len(table))])
    later["comment"] = [f"some words on bottle {row}" for row in range(len(table))]
    later.to_csv("later.csv", index=False)


@pytest.mark.usefixtures("wine_files")
def test_columns_that_training_did_not_have_change_no_score(pinoise: Command, tiny: list[str]) -> None:
    trained = pinoise("train", "--data", "wine.csv", "--label", "kind", "--out", "run", *tiny)
    assert "note: held out 36 of 178 rows" in trained.err
    own, later = pinoise("evaluate", "run", "--json"), pinoise("evaluate", "run", "--data", "later.csv", "--json")
    assert json.loads(later.out)["scores"] == json.loads(own.out)["scores"]
    assert "note:" not in own.err  # training has said it
    assert "note: held out 36 of 178 rows" in later.err
    assert "note: ignored 4 columns that training did not have: id, grade, when, comment" in " ".join(later.err.split())


@pytest.mark.usefixtures("wine_files")
def test_set_changes_how_other_data_is_read(pinoise: Command, tiny: list[str]) -> None:
    pinoise("train", "--data", "wine.csv", "--label", "kind", "--out", "run", *tiny)
    asked = ["evaluate", "run", "--data", "later.csv", "--json"]
    measured = pinoise(*asked, "--set", "data.label=grade", "--set", "data.regression=true")
    assert json.loads(measured.out)["measured"]
    found = json.loads(pinoise(*asked, "--label", "kind", "--set", "data.rows=60").out)
    assert found["sizes"] == [60, 36]
    assert not found["measured"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--set", "data.missing=zero"], "--set data.missing: a run reads all data as in training, and only "),
        (["--set", "training.epochs=3"], "--set training.epochs: a run reads all data as in training, and only "),
        (["--data", "later.csv", "--set", "data.regression=true"], "regression is true, but later.csv has classes as"),
        (["--data", "later.csv", "--set", "data.corrupt=skip"], "later.csv is not a folder of images, so corrupt"),
    ],
)
@pytest.mark.usefixtures("wine_files")
def test_what_the_run_has_decided_cannot_be_set(
    pinoise: Command, tiny: list[str], more: list[str], sentence: str
) -> None:
    pinoise("train", "--data", "wine.csv", "--label", "kind", "--out", "run", *tiny)
    assert pinoise("evaluate", "run", *more).sentence.startswith(sentence)


@pytest.mark.usefixtures("wine_files")
def test_another_label_is_classes_or_a_measurement_as_one_says(pinoise: Command, tiny: list[str]) -> None:
    assert pinoise("train", "--data", "wine.csv", "--label", "kind", "--out", "run", *tiny).code == 0
    asked = ["evaluate", "run", "--data", "later.csv", "--label", "grade", "--json"]
    assert json.loads(pinoise(*asked).out)["measured"] is False
    assert json.loads(pinoise(*asked, "--regression").out)["measured"] is True
    assert json.loads(pinoise(*asked, "--classes").out)["measured"] is False
    assert "--set data.regression" not in pinoise("evaluate", "run", "--regression").sentence


def test_raw_features_of_a_table_with_categories_are_those_of_a_comparison(
    pinoise: Command, folder: Path, tiny: list[str]
) -> None:
    random = np.random.default_rng(0)
    lines = [f"{random.normal(number % 2):.3f},city{random.zipf(1.5) % 30},{'ab'[number % 2]}" for number in range(150)]
    Path("towns.csv").write_text("\n".join(["size,city,group", *lines]) + "\n")
    asked = ["--data", "towns.csv", "--label", "group", *tiny]
    assert pinoise("train", *asked, "--out", "run").code == 0
    own = json.loads(pinoise("evaluate", "run", "--json").out)["scores"]["raw"]
    compared = json.loads(pinoise("compare", *asked, "--methods", "raw", "--seeds", 1, "--json").out)["rows"]
    (raw,) = (row for row in compared if row["method"] == "raw")
    assert {score: own[score] for score in ("knn", "sr", "lr", "few")} == {
        score: pytest.approx(raw[score], abs=1e-6) for score in ("knn", "sr", "lr", "few")
    }
