"""A comparison that trains on one set and scores on another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import pinoise
from pinoise.data import Dataset, Part, load
from pinoise.errors import UserError
from pinoise.experiments import scoring
from pinoise.experiments.sources import open_compared, score_elsewhere, scored_part
from pinoise.training.config import DataSettings
from pinoise.training.run import fit

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "training": {"epochs": 1, "batch_size": 32, "device": "cpu"},
}


def many() -> Dataset:
    """Rows without labels, in units of their own."""
    x = np.random.default_rng(5).normal(3.0, 2.0, (150, 13))
    return Dataset("many", train=Part(x))


@pytest.mark.slow
def test_the_encoder_sees_the_first_set_and_the_scores_are_of_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def remember(settings: Any, standardizer: Any, rows: Any, **options: Any) -> Any:
        seen.append(len(rows))
        return fit(settings, standardizer, rows, **options)

    monkeypatch.setattr(scoring, "fit", remember)
    wine = load("wine")
    assert wine.test is not None
    found = pinoise.compare(many(), methods=["fixed"], seeds=1, settings=SMALL, score_on="wine")
    assert list(found.by_data) == ["many → wine"]
    assert seen == [150]
    x = np.asarray(many().train.x)
    train, test = ((np.asarray(part.x) - x.mean(0)) / x.std(0) for part in (wine.train, wine.test))
    slow = KNeighborsClassifier(5).fit(train, wine.train.y).score(test, wine.test.y)
    assert found.lines[0].means["knn"] == pytest.approx(100 * slow, abs=101 / len(wine.test))  # one tie


def test_files_are_scored_on_files_that_are_read_alike(tmp_path: Path) -> None:
    wine = load("wine")
    x, y = np.asarray(wine.train.x), np.asarray(wine.train.y)
    np.save(tmp_path / "many.npy", x)
    np.savez(tmp_path / "few.npz", X=x, y=y)
    (data,) = open_compared([tmp_path / "many.npy"], DataSettings(), score_on=tmp_path / "few.npz")
    assert data.name == "many → few"
    assert len(data.train) == len(x)
    scored = scored_part(data)
    assert scored.test is not None
    assert len(scored.train) + len(scored.test) == len(x)


@pytest.mark.slow
def test_what_was_scored_on_another_set_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    wine = load("wine")
    other = Dataset("wine", train=wine.test, test=wine.train)  # type: ignore[arg-type]
    scores = [
        pinoise.compare(many(), methods=["raw"], seeds=1, settings=SMALL, score_on=scored, cache=tmp_path).lines[0]
        for scored in (wine, other, wine)
    ]
    assert scores[0].means == scores[2].means != scores[1].means


def test_mistakes_are_one_sentence(pinoise: Callable[..., Any]) -> None:
    digits, wine = load("digits"), load("wine")
    sentence = r"samples of wine have shape \(13,\) and those of digits, to score on, \(64,\): both must have the same"
    with pytest.raises(UserError, match=sentence):
        score_elsewhere(wine, digits)
    with pytest.raises(UserError, match=r"many has no labels to score with"):
        score_elsewhere(wine, many())
    assert (
        "wine is trained on and scored on anyway" in pinoise("compare", "--data", "wine", "--score-on", "wine").sentence
    )
    assert "unknown data set 'wien'" in pinoise("compare", "--data", "wine", "--score-on", "wien").sentence
