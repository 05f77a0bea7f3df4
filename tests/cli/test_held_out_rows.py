"""What ``evaluate`` scores was never trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.data.dataset import Dataset, Part, split
from pinoise.data.options import ReadOptions
from pinoise.data.readers import read_file
from pinoise.experiments.scoring import score_run
from pinoise.model import load_run

Command = Callable[..., Any]
LABELLED = ["--data", "people.csv", "--label", "group"]


def lines(part: Part | None) -> set[bytes]:
    assert part is not None
    return {np.asarray(row).tobytes() for row in np.asarray(part.x)}


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[Dataset]:
    """The data sets that runs are scored on."""
    found: list[Dataset] = []

    def remember(run: Any, data: Dataset, **options: Any) -> Any:
        found.append(data)
        return score_run(run, data, **options)

    monkeypatch.setattr("pinoise.experiments.evaluated.score_run", remember)
    return found


@pytest.mark.parametrize("rows", [None, 30])
def test_a_labelled_file_is_split_once_for_training_and_evaluation(
    pinoise: Command, people: Path, tiny: list[str], scored: list[Dataset], rows: int | None
) -> None:
    limit = [] if rows is None else ["--rows", rows]
    result = pinoise("train", *LABELLED, *limit, "--set", "data.missing=mean", "--out", "run", *tiny)
    assert result.code == 0
    assert "note: held out 12 of 60 rows for the test part, by class (seed 0)" in result.err
    expected = split(read_file(people, ReadOptions(label="group", missing="mean"))[0])
    if rows is not None:
        expected = expected.draw(rows)
    assert json.loads(Path("run/data.json").read_text())["rows"] == len(expected.train)
    np.testing.assert_allclose(load_run("run").standardizer.mean, np.asarray(expected.train.x).mean(axis=0))

    for arguments in ([], ["--label", "group"], ["--data", "people.csv"], ["--data", people]):
        assert pinoise("evaluate", "run", *arguments).code == 0
        data = scored.pop()
        assert lines(data.train) == lines(expected.train)
        assert lines(data.test) == lines(expected.test)
    assert pinoise("train", "--resume", "run", "--epochs", 3).code == 0


def test_a_file_without_labels_is_trained_on_whole_and_a_later_label_is_a_caveat(
    pinoise: Command, people: Path, tiny: list[str]
) -> None:
    assert pinoise("train", "--data", "people.csv", "--set", "data.drop=[group]", "--out", "run", *tiny).code == 0
    assert json.loads(Path("run/data.json").read_text())["rows"] == 60
    unscored = pinoise("evaluate", "run")
    assert unscored.code == 0
    assert "Without labels, nobody can say whether this embedding is better than raw features" in unscored.out
    assert "do not tell accuracy" in unscored.out
    assert "name their column with --label" in unscored.out
    assert re.search(r"nearest rows among raw features, the embedding keeps \d+ % \(untrained \d+ %", unscored.out)
    assert json.loads(Path("run/evaluation.json").read_text())["scores"] == {}
    result = pinoise("evaluate", "run", "--label", "group")
    assert result.code == 0
    assert "note: run was trained on rows that are scored here: train with --label group" in result.err


def test_another_file_is_split_without_a_caveat(
    pinoise: Command, people: Path, tiny: list[str], scored: list[Dataset]
) -> None:
    assert pinoise("train", *LABELLED, "--out", "run", *tiny).code == 0
    Path("other.csv").write_text(people.read_text().replace("Oslo", "Bern"))
    result = pinoise("evaluate", "run", "--data", "other.csv")
    assert result.code == 0
    assert "trained on" not in result.err
    (data,) = scored
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (48, 12)


def test_a_file_that_changed_is_not_scored_as_the_runs_own(pinoise: Command, people: Path, tiny: list[str]) -> None:
    assert pinoise("train", *LABELLED, "--out", "run", *tiny).code == 0
    people.write_text("".join(people.read_text().splitlines(keepends=True)[:50]))
    for arguments in ([], ["--data", "people.csv"]):
        assert "people.csv has changed since run began" in pinoise("evaluate", "run", *arguments).sentence


def test_the_json_of_a_run_without_learned_noise_is_json(pinoise: Command, people: Path, tiny: list[str]) -> None:
    result = pinoise("train", *LABELLED, "--set", "views.noise=scarf", "--out", "run", "--json", *tiny)
    assert "NaN" not in result.out
    metrics = json.loads(result.out)["metrics"]
    assert metrics["sigma_mean"] is None
    assert metrics["information"] >= 0  # of predefined views too


@pytest.mark.parametrize(("name", "label"), [("a: b #1.csv", "2020"), ("yes.csv", "null"), ("é😀.csv", "σ")])
def test_a_column_and_a_file_may_be_called_anything(
    pinoise: Command, folder: Path, tiny: list[str], name: str, label: str
) -> None:
    x = np.column_stack([np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2])
    np.savetxt(name, x, delimiter=",", header=f"a,b,{label}", comments="", encoding="utf-8")
    assert pinoise("train", "--data", name, "--label", label, "--out", "run", *tiny).code == 0
    assert json.loads(Path("run/data.json").read_text())["rows"] == 32
    assert pinoise("evaluate", "run", "--label", label).code == 0
    assert pinoise("train", "--resume", "run").code == 0
