"""Reproductions: on real data at the scale of a smoke test, and what the cache serves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.choices import SCORES
from pinoise.data.dataset import Part
from pinoise.errors import UserError
from pinoise.experiments import scoring
from pinoise.paper.reproduce import run, runs
from pinoise.paper.reproduce.masks import random_masks
from pinoise.paper.reproduce.outcome import Reproduction
from pinoise.paper.reproduce.paper import Item, Kind, PaperSource, Row, Scale, SetGroup, item_names
from pinoise.paper.reproduce.run import ItemRun, reproduce
from pinoise.paper.reproduce.verdict import verdict
from pinoise.training.run import fit, run_training

SIZES = {"encoder": {"hidden": 8, "out_features": 4}, "noise": {"generator": {"hidden": 8}}}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.parametrize("name", item_names())
def test_every_item_runs_on_real_data(name: str, real_data: Path, cache: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINOISE_CACHE", str(cache))
        found = reproduce(name, scale="smoke", cache=cache).found
    item = found.item
    assert found.is_complete
    assert len(found.lines) == sum(len(list(item.rows_on(key))) for key in item.sets("smoke"))
    for line in found.lines:
        assert line.ours
        assert all(math.isfinite(value) for values in line.ours.values() for value in values)
        assert all(0 <= value <= 100 for score in SCORES for value in line.ours.get(score, ()))
    stand_ins = [used for used in found.used if used.is_stand_in]
    assert [f"{used.name} stands in for {used.title}" in found.notes for used in stand_ins] == [True] * len(stand_ins)
    assert len(verdict(found)) > 20
    assert Reproduction.from_dict(found.as_dict()) == found


def small_item(kind: Kind = "accuracy", *, epochs: int = 1) -> Item:
    """An item on a set that comes with scikit-learn."""
    rows = [
        Row("Random Noise", "fixed", paper={"digits": {"knn": [50.0, 1.0]}}),
        Row("PiNDA", "pinda-paper", above="Random Noise", paper={"digits": {"knn": [60.0, 1.0]}}),
        Row("raw features", "raw"),
        Row("best of two", ["fixed-0.5", "fixed-2"]),
    ]
    training = {"epochs": epochs, "batch_size": 40}
    return Item(
        name="T2",
        title="a small table",
        label="small",
        kind=kind,
        columns=["knn"] if kind == "accuracy" else ["contrast"],
        data={"digits": PaperSource("Digits", "digits")},
        groups=[SetGroup("all", rows if kind == "accuracy" else rows[:2])],
        scales={
            name: Scale("a second", rows=40, test_rows=40, settings={"training": training}, sizes=SIZES)
            for name in ("paper", "small", "smoke")
        },
    )


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objectives of the encoders that are trained from now on."""
    seen: list[str] = []

    def remember(settings: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(settings.objective.name)
        return fit(settings, *arguments, **options)

    def remember_run(path: Path, settings: Any, **options: Any) -> Any:
        seen.append(settings.objective.name)
        return run_training(path, settings, **options)

    monkeypatch.setattr(scoring, "fit", remember)
    monkeypatch.setattr(runs, "run_training", remember_run)
    return seen


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a small item in this test's own cache."""

    def start(item: Item, **options: Any) -> ItemRun:
        monkeypatch.setattr(run, "find_item", lambda _: item)
        return reproduce(item.name, cache=tmp_path, **options)

    return start


def test_lines_have_the_papers_number_ours_and_the_difference(small: Any) -> None:
    found = small(small_item(), seeds=2).found
    line = found.line("digits", "PiNDA")
    assert line is not None
    assert len(line.ours["knn"]) == 2
    assert line.difference("knn") == pytest.approx(np.mean(line.ours["knn"]) - 60.0)
    row = found.as_dict()["rows"][1]
    assert row["difference"]["knn"] == pytest.approx(line.difference("knn"))
    low, high = row["interval"]["knn"]
    assert low <= np.mean(line.ours["knn"]) <= high


def test_of_several_recipes_the_best_is_shown(small: Any) -> None:
    found = small(small_item()).found
    line = found.line("digits", "best of two")
    assert line is not None
    alone = [
        small(small_item()._replace(groups=[SetGroup("all", [Row("one", recipe)])])).found.lines[0].ours["knn"]
        for recipe in ("fixed-0.5", "fixed-2")
    ]
    assert line.ours["knn"] == max(alone)


def test_an_interrupted_reproduction_goes_on_where_it_stopped(
    small: Any, fits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_at_the_second(settings: Any, *arguments: Any, **options: Any) -> Any:
        if settings.objective.name == "paper":
            raise KeyboardInterrupt
        return fit(settings, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(scoring, "fit", stop_at_the_second)
        stopped = small(small_item(), keep_partial=True).found
        with pytest.raises(KeyboardInterrupt):
            small(small_item())
    assert (stopped.finished, stopped.total) == (1, 5)
    assert [line.title for line in stopped.lines] == ["Random Noise"]
    assert "Stopped after 1 of 5 fits" in verdict(stopped)
    assert small(small_item()).found.is_complete
    assert fits == ["paper", "fixed", "fixed"]


def test_runs_behind_curves_are_found_again_and_their_curves_are_means_over_seeds(small: Any, fits: list[str]) -> None:
    first = small(small_item("curves", epochs=3), seeds=2)
    assert fits == ["fixed", "fixed", "paper", "paper"]
    again = small(small_item("curves", epochs=3), seeds=2)
    assert len(fits) == 4
    assert again.found.curves == first.found.curves
    curve = first.found.curves[0]
    assert curve.epochs == [1, 2, 3]
    histories = [[record.metrics["contrast"] for record in one.history] for one in first.runs[:2]]
    assert curve.values == pytest.approx(np.mean(histories, axis=0))
    small(small_item("curves", epochs=2))
    assert len(fits) == 6


def test_masks_of_a_random_model_lie_at_the_rows_of_their_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    whole = np.load(random_masks(Part(images)))
    part = np.load(random_masks(Part(images).take(np.array([1, 4]))))
    assert whole.shape == part.shape == (5, 32, 32)
    assert np.array_equal(part[[1, 4]], whole[[1, 4]])
    assert not part[[0, 2, 3]].any()
    assert 0.1 < whole.mean() < 0.9


def test_without_any_of_its_data_an_item_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="T3 needs CIFAR-10, of which neither the data nor a stand-in is here"):
        reproduce("T3", scale="smoke", cache=tmp_path)
    with pytest.raises(UserError, match="unknown scale 'tiny'"):
        reproduce("T3", scale="tiny", cache=tmp_path)


def test_operations_of_the_papers_vectors_need_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    found = reproduce("T10", scale="smoke", cache=tmp_path).found
    added = {line.data: line.ours["flops"][0] for line in found.lines if line.title == "PiNDA"}
    features = {"har": 561, "reuters": 2000, "epsilon": 2000, "mslr": 136}
    assert added == {key: 256 * 3 * (d * 1024 + 1024**2) for key, d in features.items()}
