"""Test classes that training lacks are noted wherever something is scored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.data.dataset import Dataset, Part
from pinoise.experiments.compare import compare


def labelled() -> Dataset:
    x = np.random.default_rng(0).normal(size=(60, 3))
    y = np.repeat([0, 1, 2], 20)
    names = ("ash", "birch", "cedar")
    return Dataset("trees", train=Part(x[:40], y[:40]), test=Part(x[30:], y[30:]), class_names=names)


def test_a_comparison_notes_them() -> None:
    notes: list[str] = []
    small = {"encoder": {"hidden": 8}, "training": {"epochs": 1, "batch_size": 20, "device": "cpu"}}
    found = compare(labelled(), methods=["fixed"], seeds=1, settings=small, note=notes.append)
    assert found.lines[0].means["knn"] < 100 * 10 / 30 + 1
    (said,) = [note for note in notes if "without a training row" in note]
    assert said == (
        "trees: 20 of 30 test rows are of 1 class without a training row (cedar): they count as errors in every score"
    )


@pytest.mark.parametrize("draws", [1, 1001, 10_000_000])
def test_draws_have_a_bound(draws: int, pinoise: Callable[..., Any], tmp_path: Path) -> None:
    sentence = pinoise("evaluate", tmp_path, "--information", "--draws", draws).sentence
    assert sentence.startswith("Invalid value for '--draws': ")
