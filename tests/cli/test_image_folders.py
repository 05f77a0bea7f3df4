"""Folders of images that a run was not trained on: their own classes, and their names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from tests.problems import write_images

Command = Callable[..., Any]


def write(folder: str, *names: str, side: int = 8) -> None:
    write_images(Path(folder), *names, size=(side, side, 3))


def labelled(*classes: str) -> list[str]:
    return [f"{name}/{number:02}.png" for name in classes for number in range(15)]


@pytest.fixture
def flat_run(pinoise: Command, folder: Path, tiny: list[str]) -> str:
    """A run on a folder without classes, which leaves out corrupt files."""
    write("flat", *(f"{number:02}.png" for number in range(20)))
    choices = ["--set", "data.size=8", "--set", "data.corrupt=skip", "--batch-size", "8"]
    trained = pinoise("train", "--data", "flat", "--out", "run", *choices, *tiny)
    assert trained.code == 0, trained.err
    return "run"


def test_a_run_without_labels_is_scored_on_a_labelled_folder(pinoise: Command, flat_run: str) -> None:
    assert "Without labels, nobody can say" in pinoise("evaluate", "run").out
    write("later", *labelled("cat", "dog"), side=9)
    scored = pinoise("evaluate", "run", "--data", "later", "--json")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["scores"].keys() == {"raw", "untrained", "learned"}
    write("more", *(f"{number}.png" for number in range(3)))
    told = pinoise("evaluate", "run", "--data", "more").out
    assert "Without labels, nobody can say" in told
    assert "For labels to score it with, put images into one folder per class" in told


def test_a_run_is_scored_on_classes_that_training_had_not(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    write("known", *labelled("cat", "dog"))
    trained = pinoise("train", "--data", "known", "--out", "run", "--batch-size", "8", *tiny)
    assert trained.code == 0, trained.err
    write("other", *labelled("ant", "bee", "cat"))
    scored = pinoise("evaluate", "run", "--data", "other")
    assert scored.code == 0, scored.err
    assert "held out 9 of 45 rows for the test part, by class" in scored.err


def test_rows_of_a_folder_are_embedded_with_their_names_and_skipped_files_are_told(
    pinoise: Command, flat_run: str
) -> None:
    write("new", *(f"{letter}.png" for letter in "abcdefgh"))
    for letter in "bcdfg":
        Path("new", f"{letter}.png").write_bytes(b"no image")
    embedded = pinoise("embed", "run", "--data", "new", "--out", "z.csv")
    assert embedded.code == 0, embedded.err
    sentence = r"note: left out 5 corrupt images \(.*\): b\.png, c\.png, d\.png, f\.png and 1 more"
    assert re.search(sentence, embedded.err)
    table = pyarrow.csv.read_csv("z.csv")
    assert table.column("file").to_pylist() == ["a.png", "e.png", "h.png"]
    assert pinoise("embed", "run", "--data", "new", "--out", "z.npz").code == 0
    with np.load("z.npz") as archive:
        assert archive["names"].tolist() == ["a.png", "e.png", "h.png"]
        np.testing.assert_allclose(archive["X"][:, 0], table.column("x0"), rtol=1e-6)
