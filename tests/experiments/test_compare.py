"""Comparisons against independent computations."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pinoise.data.dataset import Dataset, Part
from pinoise.data.source import open_source
from pinoise.errors import UserError
from pinoise.experiments import RECIPES, SCORES, Cell, choose_methods, compare, plan, summarise

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "head": {"hidden": 8, "out_features": 4},
    "noise": {"hidden": 16},
    "training": {"epochs": 2, "batch_size": 100, "device": "cpu"},
}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return open_source("digits", rows=100)[0]


def cells_of(data: Dataset, methods: list[str], seeds: list[int]) -> list[Cell]:
    return list(compare([data], plan(methods, seeds, settings=SMALL)))


@pytest.mark.parametrize("method", RECIPES)
def test_every_recipe_trains_and_gives_finite_scores(digits: Dataset, method: str) -> None:
    (cell,) = cells_of(digits, [method], [0])
    assert (cell.data, cell.method, cell.seed) == ("digits", method, 0)
    assert all(0 < getattr(cell, score) <= 1 for score in SCORES)


def test_the_raw_row_is_what_scikit_learn_computes(digits: Dataset) -> None:
    (cell,) = cells_of(digits, ["raw"], [0])
    assert digits.test is not None
    knn = make_pipeline(StandardScaler(), KNeighborsClassifier(5)).fit(digits.train.x, digits.train.y)
    assert cell.knn == pytest.approx(knn.score(digits.test.x, digits.test.y), abs=1.5 / len(digits.test))  # one tie


@pytest.mark.parametrize("method", ["untrained", "pinda-paper", "scarf"])
def test_a_seed_decides_everything(digits: Dataset, method: str) -> None:
    first, again, other = cells_of(digits, [method], [0]) + cells_of(digits, [method], [0, 1])
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(first, seconds=0.0)
    assert [getattr(other, name) for name in SCORES] != [getattr(first, name) for name in SCORES]


def test_methods_do_not_disturb_one_another(digits: Dataset) -> None:
    alone = cells_of(digits, ["scarf"], [0])[0]
    beside = cells_of(digits, ["fixed", "clae", "scarf"], [0])[-1]
    assert dataclasses.replace(alone, seconds=0.0) == dataclasses.replace(beside, seconds=0.0)


def test_collapsed_noise_is_flagged_by_name(digits: Dataset) -> None:
    settings = {**SMALL, "noise": {"hidden": 16, "initial_scale": 1e-3}}
    cells = list(compare([digits], plan(["fixed", "pinda-paper"], [0], settings=settings)))
    assert [cell.flags for cell in cells] == [(), ("shrink",)]  # what is fixed cannot collapse


def test_labels_are_needed_to_score() -> None:
    blind = Dataset("blind", train=Part(np.eye(4)), test=Part(np.eye(4)))
    with pytest.raises(UserError, match="blind has no labels to score with"):
        list(compare([blind], plan(["raw"], [0], settings={})))


def test_a_plan_finds_mistakes_before_any_work() -> None:
    with pytest.raises(UserError, match=r"unknown setting 'training.epoch'"):
        plan(["raw", "fixed"], [0], settings={"training": {"epoch": 3}})
    with pytest.raises(UserError, match="objective is what makes method 'fixed'"):
        plan(["raw", "fixed"], [0], settings={"objective": "paper"})
    assert plan(["simcl"], [4], settings={"method": {"temperature": 0.5}})["simcl", 4].method.temperature == 0.5


def test_raw_and_untrained_are_always_there_and_first() -> None:
    assert choose_methods(["scarf", "raw", "scarf"]) == ["raw", "untrained", "scarf"]
    with pytest.raises(UserError, match="did you mean 'scarf'"):
        choose_methods(["sacrf"])


def test_summaries_are_numpys_mean_and_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((2, 3, 4))  # methods, seeds, scores
    cells = []
    for seed in range(3):
        for i, method in enumerate(["raw", "fixed"]):
            knn, sr, lr, few = map(float, values[i, seed])
            flags = ("shrink",) if seed == 1 else ()
            cells.append(Cell("toy", method, seed, knn, sr, lr, few, seconds=float(seed), flags=flags))
    lines = summarise(cells)
    assert [line.method for line in lines] == ["raw", "fixed"]
    for i, line in enumerate(lines):
        np.testing.assert_allclose([line.means[name] for name in SCORES], 100 * values[i].mean(0))
        np.testing.assert_allclose([line.stds[name] for name in SCORES], 100 * values[i].std(0))
        assert line.seconds == 1.0
        assert line.flags == ("shrink",)
