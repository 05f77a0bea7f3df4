"""What the command is told of columns and cells: those to leave out, to keep, and what means missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

SMALL = [
    "--epochs",
    "1",
    "--set",
    "encoder.hidden=8",
    "--set",
    "encoder.out_features=4",
    "--set",
    "training.device=cpu",
]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """People whose town and whose kind are sometimes unknown, with an index that tells the kind, as it is sorted."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 90, 120),
            "town": random.choice(["Rome", "Oslo", "?"], 120),
            "kind": np.repeat(["a", "b"], 60),
            "code": [f"{number:05d}" for number in range(120)],
        }
    )
    path = tmp_path / "people.csv"
    frame.sample(frac=1, random_state=0).to_csv(path)
    return path


def features(run: Path) -> list[str]:
    return list(json.loads((run / "data.json").read_text(encoding="utf-8"))["feature_names"])


def test_the_index_of_a_shuffled_frame_does_not_tell_the_label(
    people: Path, tmp_path: Path, pinoise: Callable[..., Any]
) -> None:
    said = pinoise("train", "--data", people, "--label", "kind", "--out", tmp_path / "run", *SMALL).err
    assert "dropped the column 'Unnamed: 0', an index: it has no name" in said
    assert "column 'town' has '?' in" in said
    assert "dropped the column 'code'" in said
    assert features(tmp_path / "run") == ["age", "town=?", "town=Oslo", "town=Rome"]
    pinoise("train", "--data", people, "--label", "kind", "--out", tmp_path / "kept", "--keep", "Unnamed: 0", *SMALL)
    assert "Unnamed: 0" in features(tmp_path / "kept")


def test_columns_are_dropped_and_cells_are_missing_as_said(
    people: Path, tmp_path: Path, pinoise: Callable[..., Any]
) -> None:
    options = ["--drop", "code", "--drop", "Unnamed: 0", "--na", "?"]
    said = pinoise("train", "--data", people, "--label", "kind", "--out", tmp_path / "run", *options, *SMALL).err
    assert "dropped" not in said
    assert features(tmp_path / "run") == ["age", "town=Oslo", "town=Rome", "town=missing"]
    by_set = ["--set", "data.drop=Unnamed: 0", "--set", "data.na=?"]
    pinoise("train", "--data", people, "--label", "kind", "--out", tmp_path / "set", *by_set, *SMALL)
    assert features(tmp_path / "set") == features(tmp_path / "run")
    refused = pinoise("train", "--data", people, "--out", tmp_path / "no", "--drop", "kid", *SMALL)
    assert "'kid': did you mean 'kind'?" in refused.sentence


def test_a_mark_for_unknown_is_no_class_of_the_target(
    people: Path, tmp_path: Path, pinoise: Callable[..., Any]
) -> None:
    frame = pd.read_csv(people, index_col=0)
    frame["kind"] = frame["kind"].where(np.arange(120) < 40, "?")
    frame.to_csv(people)
    found = pinoise(
        "train", "--data", people, "--target", "kind", "--na", "?", "--out", tmp_path / "run", "--json", *SMALL
    )
    about = json.loads(found.out)["target"]
    assert (about["rows"], about["labelled"], sorted(about["classes"])) == (120, 40, ["a", "b"])


def test_an_open_quotation_mark_ends_in_one_sentence(people: Path, tmp_path: Path, pinoise: Callable[..., Any]) -> None:
    lines = people.read_text(encoding="utf-8").splitlines()
    lines[60] = lines[60].replace(",a,", ',"a,').replace(",b,", ',"b,')
    people.write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = pinoise("train", "--data", people, "--label", "kind", "--out", tmp_path / "run", *SMALL).sentence
    assert "a quotation mark in data row 60 is never closed, and swallows all rows after it" in told
    assert not (tmp_path / "run").exists()
