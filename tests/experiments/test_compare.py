"""Comparisons against independent computations."""

from __future__ import annotations

import dataclasses
import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pinoise.choices import SCORES
from pinoise.data.dataset import Dataset, Part
from pinoise.data.options import ReadOptions
from pinoise.data.readers import open_source
from pinoise.errors import UserError
from pinoise.evaluation.logistic import few_label_rows
from pinoise.experiments.cache import CellCache, cell_key
from pinoise.experiments.fitting import _what_counts, fit_all
from pinoise.experiments.plans import plan
from pinoise.experiments.recipes import RECIPES, installed, sees_features
from pinoise.experiments.results import Cell
from pinoise.networks import ResNet18
from pinoise.training.config import Settings, complete, parse_settings

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "head": {"hidden": 8, "out_features": 4},
    "noise": {"generator": {"hidden": 16}},
    "training": {"epochs": 2, "batch_size": 50, "device": "cpu"},
}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return open_source("digits", ReadOptions(rows=100))[0]


@pytest.fixture(scope="module")
def few(digits: Dataset) -> Dataset:
    assert digits.test is not None
    return dataclasses.replace(digits.draw(60), test=digits.test.take(np.arange(60)))


def cells_of(data: Dataset, methods: list[str], seeds: list[int], **options: Any) -> list[Cell]:
    return list(fit_all([data], plan(methods, seeds, settings=SMALL), **options))


def untimed(cells: list[Cell]) -> list[Cell]:
    return [dataclasses.replace(cell, seconds=0.0) for cell in cells]


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", RECIPES)
def test_every_recipe_trains_and_gives_finite_scores(digits: Dataset, method: str, tmp_path: Path) -> None:
    settings = dict(SMALL)
    if "vit" in (RECIPES[method].settings or {}).values():
        settings["encoder"] = {"patch": 4, "dim": 8, "depth": 1, "heads": 2}
    if method == "aug-background":
        np.save(tmp_path / "masks.npy", np.ones((1797, 8, 8), dtype=bool))  # of every image of the source
        settings["views"] = {"noise": {"masks": str(tmp_path / "masks.npy")}}
    if method.startswith("aug"):
        pytest.importorskip("kornia")
        assert digits.test is not None
        parts = [
            dataclasses.replace(part, x=np.asarray(part.x).reshape(-1, 8, 8)) for part in (digits.train, digits.test)
        ]
        digits = dataclasses.replace(digits, train=parts[0], test=parts[1])
    if not installed(method):
        pytest.skip(f"{method} needs {RECIPES[method].needs}")
    (cell,) = fit_all([digits], plan([method], [0], settings=settings))
    assert (cell.data, cell.method, cell.seed, cell.embedding) == ("digits", method, 0, "joined")
    scored = ("few",) if RECIPES[method].classifier else SCORES
    assert all(0 < getattr(cell, score) <= 1 for score in scored)
    assert all(getattr(cell, score) is None for score in SCORES if score not in scored)
    assert len(cell.few_draws) == 10
    assert cell.few == pytest.approx(np.mean(cell.few_draws))


def test_the_raw_row_is_what_scikit_learn_computes(digits: Dataset) -> None:
    joined, learned = cells_of(digits, ["raw"], [0], embeddings=("joined", "learned"))
    assert digits.test is not None
    knn = make_pipeline(StandardScaler(), KNeighborsClassifier(5)).fit(digits.train.x, digits.train.y)
    assert joined.knn == pytest.approx(knn.score(digits.test.x, digits.test.y), abs=1.5 / len(digits.test))  # one tie
    assert untimed([dataclasses.replace(learned, embedding="joined")]) == untimed([joined])  # there is no learned part


@pytest.mark.slow
def test_classifiers_and_reductions_are_scored_on_the_standardised_features_and_the_labels_of_all(
    digits: Dataset, fits: list[Settings]
) -> None:
    cells = {cell.method: cell for cell in cells_of(digits, ["raw", "svm", "self-training", "pca"], [3])}
    assert digits.test is not None
    assert digits.train.y is not None
    assert digits.test.y is not None
    scaler = StandardScaler().fit(digits.train.x)
    train, test = (scaler.transform(part.x) for part in (digits.train, digits.test))
    models = {
        "raw": LogisticRegression(max_iter=1000),
        "svm": SVC(),
        "pca": make_pipeline(PCA(50), LogisticRegression(max_iter=1000)),
    }
    for name, model in models.items():
        if name == "pca":  # learned from all rows
            train, test = (model[0].fit(train).transform(x) for x in (train, test))
            model = model[1]
            knn = KNeighborsClassifier(5).fit(train, digits.train.y).score(test, digits.test.y)
            assert cells[name].knn == pytest.approx(knn, abs=1.5 / len(digits.test))
        expected = []
        for draw in range(10):
            rows = few_label_rows(digits.train.y, labels_per_class=10, draw=draw, seed=3)
            expected.append(model.fit(train[rows], digits.train.y[rows]).score(test, digits.test.y))
        assert cells[name].few_draws == pytest.approx(expected, abs=0.01)
    assert fits == []


@pytest.mark.slow
def test_only_the_scores_asked_for_are_computed_and_cached_apart(digits: Dataset, tmp_path: Path) -> None:
    cache = CellCache(tmp_path)
    some = cells_of(digits, ["raw", "fixed", "forest"], [0], scores=("few", "knn"), cache=cache)
    every = cells_of(digits, ["raw", "fixed"], [0], cache=cache)
    for cell, whole in zip(some, every, strict=False):
        assert (cell.sr, cell.lr, cell.few_standardised) == (None, None, None)
        assert (cell.knn, cell.few_draws) == (whole.knn, whole.few_draws)
        assert None not in (whole.sr, whole.lr, whole.few_standardised)
    assert cells_of(digits, ["raw", "fixed", "forest"], [0], scores=("knn", "few"), cache=cache) == some


@pytest.mark.parametrize("method", ["untrained", "pinda-paper", "pinda", "scarf"])
def test_a_seed_decides_everything(digits: Dataset, method: str) -> None:
    first, again, other = untimed(cells_of(digits, [method], [0]) + cells_of(digits, [method], [0, 1]))
    assert again == first
    assert [getattr(other, name) for name in SCORES] != [getattr(first, name) for name in SCORES]


def test_one_fit_is_scored_under_every_embedding_asked_for(digits: Dataset, fits: list[Settings]) -> None:
    both = cells_of(digits, ["scarf"], [0, 1], embeddings=("joined", "learned"))
    assert [(cell.seed, cell.embedding) for cell in both] == [
        (seed, embedding) for seed in (0, 1) for embedding in ("joined", "learned")
    ]
    assert len(fits) == 2
    alone = cells_of(digits, ["scarf"], [0], embeddings=("learned",))
    assert untimed(alone) == untimed(both[1:2])
    assert [getattr(both[0], name) for name in SCORES] != [getattr(both[1], name) for name in SCORES]
    assert both[0].seconds == both[1].seconds


@pytest.mark.parametrize(
    ("steps", "batch_size", "epochs"),
    [(1, 20, 1), (5, 20, 1), (6, 20, 2), (12, 20, 3), (12, 30, 4), (3, 1000, 3)],  # 100 rows
)
def test_steps_become_whole_epochs_of_at_least_as_many(
    digits: Dataset, fits: list[Settings], steps: int, batch_size: int, epochs: int
) -> None:
    settings = {**SMALL, "training": {"batch_size": batch_size, "device": "cpu"}}
    plans = plan(["fixed"], [0], settings=settings)
    list(fit_all([digits], plans, steps=steps))
    assert [settings.training.epochs for settings in fits] == [epochs]


@pytest.mark.slow
def test_finished_cells_are_not_fitted_again(few: Dataset, fits: list[Settings], tmp_path: Path) -> None:
    methods = ["raw", "untrained", "fixed", "pinda"]
    first = cells_of(few, methods, [0], cache=CellCache(tmp_path))
    assert len(fits) == 2
    assert cells_of(few, methods, [0], cache=CellCache(tmp_path)) == first  # to the second that it took
    assert len(fits) == 2
    assert untimed(cells_of(few, methods, [0])) == untimed(first)  # nothing is kept or read without a cache
    assert len(fits) == 4


@pytest.mark.slow
def test_a_stopped_comparison_goes_on(few: Dataset, fits: list[Settings], tmp_path: Path) -> None:
    plans = plan(["raw", "fixed", "scarf"], [0, 1], settings=SMALL)
    begun = list(islice(fit_all([few], plans, cache=CellCache(tmp_path)), 4))
    assert len(fits) == 2
    whole = list(fit_all([few], plans, cache=CellCache(tmp_path)))
    assert len(fits) == 4
    assert whole[:4] == begun
    assert untimed(whole) == untimed(list(fit_all([few], plans)))


def changed(data: Dataset, **parts: Any) -> Dataset:
    return dataclasses.replace(data, train=dataclasses.replace(data.train, **parts))


@pytest.mark.slow
def test_a_cell_is_another_once_anything_that_it_depends_on_is(
    few: Dataset, fits: list[Settings], tmp_path: Path
) -> None:
    cache = CellCache(tmp_path)

    def fitted(data: Dataset, settings: dict[str, Any], seed: int = 0, **options: Any) -> bool:
        before = len(fits)
        list(fit_all([data], plan(["fixed"], [seed], settings={**SMALL, **settings}), cache=cache, **options))
        return len(fits) > before

    assert few.train.y is not None
    longer = {"training": {**SMALL["training"], "epochs": 3}}
    assert fitted(few, {})
    assert fitted(few, {}, seed=1)
    assert fitted(few, longer)
    assert not fitted(few, {}, steps=3)  # which is as long
    assert fitted(few, {"data": {"scaling": "global"}})
    assert fitted(changed(few, x=np.asarray(few.train.x) + 1), {})
    assert fitted(changed(few, y=few.train.y[::-1].copy()), {})
    assert fitted(dataclasses.replace(few, name="numbers"), {})
    assert not fitted(few, {})


@pytest.fixture
def images() -> Dataset:
    x = np.random.default_rng(0).integers(0, 256, (24, 8, 8, 3), dtype=np.uint8)
    return Dataset("images", Part(x[:16], np.arange(16) % 2), Part(x[16:], np.arange(8) % 2))


@pytest.mark.parametrize("setting", ["masks", "weights"])
def test_a_cell_is_another_once_a_file_that_settings_name_has_another_content(
    images: Dataset, setting: str, fits: list[Settings], tmp_path: Path
) -> None:
    pytest.importorskip("kornia")
    encoder: dict[str, Any] = {"name": "resnet18", "width": 4}

    def write(path: Path, seed: int) -> Path:
        if setting == "masks":
            np.save(path, np.random.default_rng(seed).random((16, 8, 8)) < 0.5)
        else:
            torch.manual_seed(seed)
            torch.save(ResNet18((3, 8, 8), width=4).state_dict(), path)
        return path

    def fitted(path: Path) -> bool:
        before = len(fits)
        given = encoder if setting == "masks" else {**encoder, "weights": path}
        background = {"name": "background", "masks": path}
        views = {"noise": "none", "augmentations": [background]} if setting == "masks" else {}
        settings = {**SMALL, "encoder": given, "views": views, "training": {**SMALL["training"], "batch_size": 16}}
        list(fit_all([images], {("aug", 0): complete(parse_settings(settings))}, cache=CellCache(tmp_path / "cells")))
        return len(fits) > before

    file = write(tmp_path / "first.npy", 0)
    assert fitted(file)
    assert not fitted(file)
    assert not fitted(Path(shutil.copy(file, tmp_path / "same.npy")))
    write(file, 1)
    assert fitted(file)
    assert not fitted(file)


@pytest.mark.parametrize("part", ["encoder", "noise"])
def test_cells_of_a_users_own_module_are_not_kept(
    few: Dataset, part: str, fits: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept_nets.py").write_text(
        "from torch import nn\n"
        "def encoder(shape):\n    net = nn.Linear(shape[0], 4)\n    return net\n"
        "def generator(shape, outputs):\n"
        "    return nn.Sequential(nn.Linear(shape[0], outputs * shape[0]), nn.Unflatten(1, (outputs, *shape)))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    own: dict[str, Any] = {"encoder": "kept_nets:encoder"}
    if part == "noise":
        own = {"noise": {"generator": "kept_nets:generator"}}
    for _ in range(2):
        list(fit_all([few], plan(["raw", "pinda-paper"], [0], settings={**SMALL, **own}), cache=CellCache(tmp_path)))
    assert len(fits) == 2
    assert [path.name.rsplit("-", 1)[0] for path in tmp_path.glob("*-*") if path.is_dir()] == ["raw"]


def test_the_key_of_a_cell_without_files_is_that_of_its_settings_as_json() -> None:
    methods = [method for method in RECIPES if method != "aug-background"]  # which needs a file
    for (method, _), settings in plan(methods, [0], settings=SMALL).items():
        plain = settings.model_dump(mode="json", exclude={"data": {"source", "label"}, "embedding": True})
        expected = {"data": plain["data"]} if sees_features(method) else plain
        assert cell_key(_what_counts(method, settings)) == cell_key(expected)


def test_raw_features_depend_on_no_setting_of_training(few: Dataset, tmp_path: Path) -> None:
    scored = []
    for epochs in (2, 3):
        settings = {**SMALL, "training": {**SMALL["training"], "epochs": epochs}}
        scored += list(fit_all([few], plan(["raw"], [0], settings=settings), cache=CellCache(tmp_path)))
    assert scored[0] == scored[1]
    assert len(list(tmp_path.glob("*/about.json"))) == 1


def test_a_damaged_cell_is_computed_again(few: Dataset, tmp_path: Path) -> None:
    first = cells_of(few, ["raw"], [0], cache=CellCache(tmp_path))
    (file,) = tmp_path.glob("*/about.json")
    file.write_text(file.read_text()[:-20])
    assert untimed(cells_of(few, ["raw"], [0], cache=CellCache(tmp_path))) == untimed(first)
    assert json.loads(file.read_text())["about"]["knn"] == first[0].knn


def test_collapsed_noise_is_flagged_by_name(digits: Dataset) -> None:
    settings = {**SMALL, "noise": {"generator": {"hidden": 16}, "initial_scale": 1e-3}}
    scarf, paper, ours = fit_all([digits], plan(["scarf", "pinda-paper", "pinda"], [0], settings=settings))
    assert "shrink" not in scarf.flags  # what is not learned cannot collapse
    assert "shrink" in paper.flags
    assert "shrink" in ours.flags  # it was told to begin there


def test_labels_are_needed_to_score() -> None:
    blind = Dataset("blind", train=Part(np.eye(4)), test=Part(np.eye(4)))
    with pytest.raises(UserError, match="blind has no labels to score with"):
        list(fit_all([blind], plan(["raw"], [0], settings={})))
