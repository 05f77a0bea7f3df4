"""``pinoise train --target`` and ``pinoise predict``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pinoise.model import load_run
from pinoise.networks import read_stored
from pinoise.training.folder import CLASSIFIER_FILE as CLASSIFIER

Command = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture
def some_known(people: Path) -> Path:
    """The table of people, with the group of every fourth pair of rows only."""
    table = pd.read_csv(people)
    table["group"] = table["group"].where(table.index // 2 % 4 == 0)
    table.to_csv("some.csv", index=False)
    return people


@pytest.fixture(scope="module")
def trained() -> list[Path]:
    """Where the run of this module is, once it is trained."""
    return []


@pytest.fixture
def run(
    pinoise: Command, some_known: Path, tiny: list[str], trained: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run with a classifier, this test's own copy."""
    if not trained:
        folder = tmp_path_factory.mktemp("runs")
        shutil.copy("some.csv", folder)
        result = pinoise("train", "--data", folder / "some.csv", "--target", "group", "--out", folder / "run", *tiny)
        assert result.code == 0, result.err
        assert "/run --data FILE --out FILE" in result.out
        assert "trees on raw: accuracy" in result.out
        trained.append(folder / "run")
    return Path(shutil.copytree(trained[0], "run"))


def test_the_target_of_unlabelled_and_of_new_rows_is_predicted(pinoise: Command, run: Path) -> None:
    features = ("age", "age=missing", *(f"town={t}" for t in TOWNS), "income")
    assert load_run(run).preparation.encoding.feature_names == features
    result = pinoise("predict", run, "--data", "people.csv", "--out", "new.csv")  # which has the target's column
    assert result.code == 0, result.err
    found, truth = pd.read_csv("new.csv"), pd.read_csv("people.csv")["group"]
    assert (found["class"] == truth).mean() > 0.95
    assert list(found.columns) == ["class", "p=no", "p=yes"]
    np.testing.assert_allclose(found["p=no"] + found["p=yes"], 1)
    pd.read_csv("people.csv").drop(columns="group").to_csv("bare.csv", index=False)
    other = pinoise("predict", run, "--data", "bare.csv", "--out", "new.parquet", "--json")
    assert json.loads(other.out)["rows"] == 60
    np.testing.assert_allclose(pd.read_parquet("new.parquet")["p=yes"], found["p=yes"], atol=1e-9)


TOWNS = ("Bern", "Oslo", "Rome", "missing")


def test_labels_follow_the_rows_that_were_drawn(pinoise: Command, some_known: Path, tiny: list[str]) -> None:
    result = pinoise("train", "--data", "some.csv", "--target", "group", "--rows", "40", "--out", "run", *tiny)
    assert result.code == 0, result.err
    stored = read_stored(Path("run") / CLASSIFIER).tensors
    part = load_run("run").own_data().train
    assert part.origin is not None
    table = pd.read_csv("some.csv").iloc[part.origin.rows]
    assert stored["numbers"].tolist() == (table["group"].dropna() == "yes").astype(int).tolist()


def test_names_of_classes_do_not_move_the_cursor(pinoise: Command, people: Path, tiny: list[str]) -> None:
    table = pd.read_csv(people)
    table["group"] = table["group"].map({"yes": "\x1b[2Jyes", "no": "no"})
    table.to_csv("odd.csv", index=False)
    assert pinoise("train", "--data", "odd.csv", "--target", "group", "--out", "run", *tiny).code == 0
    result = pinoise("predict", "run", "--data", "odd.csv", "--out", "new.csv")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert "\\x1b[2Jyes: 30" in result.out


def test_a_run_that_goes_on_keeps_its_target(pinoise: Command, run: Path) -> None:
    before = (run / CLASSIFIER).read_bytes()
    assert pinoise("train", "--resume", run, "--epochs", "3", "--target", "group").code == 0
    after = (run / CLASSIFIER).read_bytes()
    assert after != before
    assert pinoise("predict", run, "--data", "people.csv", "--out", "third.csv").code == 0
    assert pinoise("train", "--resume", run, "--epochs", "4").code == 0  # the run knows its target
    assert pinoise("predict", run, "--data", "people.csv", "--out", "fourth.csv").code == 0
    (run / CLASSIFIER).write_bytes(after)  # as if training had been killed before the classifier was fitted
    refused = pinoise("predict", run, "--data", "people.csv", "--out", "fifth.csv").sentence
    assert refused.startswith("run/classifier.safetensors was fitted on other weights than the run now has")
    other = pinoise("train", "--resume", run, "--target", "town")
    assert other.code == 2
    assert "may be given, not data.target" in other.err


def test_training_says_which_labels_it_found(pinoise: Command, some_known: Path, tiny: list[str]) -> None:
    said = pinoise("train", "--data", "some.csv", "--target", "group", "--out", "run", *tiny, "--json")
    assert "group: 16 of 60 rows have a label: 'no' 8, 'yes' 8" in said.err
    found = json.loads(said.out)
    assert found["target"] == {"column": "group", "rows": 60, "labelled": 16, "classes": {"no": 8, "yes": 8}}
    assert sum(voter["weight"] for voter in found["chosen"]) + found["student_weight"] == pytest.approx(1)
    assert {"features", "model", "strength", "accuracy", "log_loss"} < set(found["chosen"][0])
    table = pd.read_csv("some.csv")
    table.assign(group=table["group"].map({"no": 0, "yes": 1}).fillna(-1).astype(int)).to_csv("marked.csv", index=False)
    marked = pinoise("train", "--data", "marked.csv", "--target", "group", "--out", "marked", *tiny)
    assert "group: -1 is taken for a class: leave cells without a label empty" in marked.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--data", "some.csv", "--target", "grup"), "unknown column of some.csv 'grup': did you mean 'group'?"),
        (("--data", "digits", "--target", "group"), "names a column of a table (.csv, .parquet), and digits is none."),
        (
            ("--data", "some.csv", "--target", "group", "--label", "group"),
            "setting 'data.target' is 'group' and data.label is 'group'",
        ),
        (("--data", "one.csv", "--target", "group"), "every label is 'yes', but classes need two or more."),
        (
            ("--data", "none.csv", "--target", "group"),
            "target column 'group' is empty: a classifier needs some labels.",
        ),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused_before_training(
    pinoise: Command, some_known: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    table = pd.read_csv("some.csv")
    table.assign(group=table["group"].where(table["group"] == "yes")).to_csv("one.csv", index=False)
    table.assign(group=None).to_csv("none.csv", index=False)
    result = pinoise("train", *arguments, "--out", "run")
    assert result.code == 2
    assert sentence in result.err
    assert not Path("run").exists()


def test_predictions_do_not_replace_files_or_come_from_a_run_without_a_target(
    pinoise: Command, run: Path, digits_run: Path
) -> None:
    Path("mine.csv").write_text("keep")
    refused = pinoise("predict", run, "--data", "people.csv", "--out", "mine.csv")
    assert refused.code == 2
    assert Path("mine.csv").read_text() == "keep"
    assert pinoise("predict", run, "--data", "people.csv", "--out", "mine.csv", "--force").code == 0
    assert pinoise("predict", run, "--data", "people.csv", "--out", "people.csv", "--force").code == 2
    assert ".npy'" in pinoise("predict", run, "--data", "people.csv", "--out", "z.npy").err
    without = pinoise("predict", digits_run, "--data", "digits", "--out", "z.csv")
    assert without.err.strip().endswith("has no classifier: train with --target COLUMN.")
