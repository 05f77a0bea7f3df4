"""``pinoise.compare``: the command's comparison from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pinoise
from pinoise.data import from_arrays, load
from pinoise.errors import UserError
from pinoise.experiments import compare as module
from pinoise.experiments import recipes
from pinoise.experiments.results import Cell

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "training": {"epochs": 1, "batch_size": 64, "device": "cpu"},
}


def untimed(cells: list[Cell]) -> list[dict[str, Any]]:
    return [{**cell.as_dict(), "seconds": 0} for cell in cells]


@pytest.mark.slow
def test_names_files_and_data_sets_are_compared_alike(tmp_path: Path) -> None:
    wine = load("wine")
    y = np.asarray(wine.train.y)
    np.savez(tmp_path / "mine.npz", X=np.asarray(wine.train.x), y=y)
    held, _ = from_arrays(np.asarray(wine.train.x), y, name="mine")
    by_file = pinoise.compare(tmp_path / "mine.npz", methods=["fixed"], seeds=2, settings=SMALL)
    by_data = pinoise.compare(held, methods=["fixed"], seeds=[0, 1], settings=SMALL)
    assert [(line.data, line.method) for line in by_file.lines] == [
        ("mine", "raw"),
        ("mine", "untrained"),
        ("mine", "fixed"),
    ]
    assert untimed(by_file.cells) == untimed(by_data.cells)
    assert (len(by_file.cells), by_file.total, by_file.embedding) == (6, 6, "joined")
    assert by_file.verdicts["mine"].startswith("On mine, random noise (σ = 1) is the best learned embedding")


def test_what_was_found_is_json_with_its_settings() -> None:
    found = pinoise.compare("wine", methods=["fixed"], seeds=1, settings=SMALL)
    document = json.loads(json.dumps(found.as_dict()))
    assert {"rows", "ranks", "significance", "verdicts", "settings", "environment"} < set(document)
    assert document["settings"]["encoder"]["hidden"] == 16


def test_a_stopped_comparison_raises_or_returns_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: Any, **options: Any) -> Any:
        yield Cell("wine", "raw", 0, "joined", 0.5, 0.5, 0.5, 0.5, 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit_all", stopped)
    partial = pinoise.compare("wine", methods=["fixed"], seeds=1, settings=SMALL, keep_partial=True)
    assert (len(partial.cells), partial.total) == (1, 3)
    with pytest.raises(KeyboardInterrupt):
        pinoise.compare("wine", methods=["fixed"], seeds=1, settings=SMALL)


def test_a_method_whose_package_is_missing_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "find_spec", lambda _: None)
    notes: list[str] = []
    found = pinoise.compare("wine", methods=["umap", "pca"], seeds=1, settings=SMALL, note=notes.append)
    assert [cell.method for cell in found.cells] == ["raw", "untrained", "pca"]
    assert "UMAP is left out: the module umap is not installed" in notes


def test_contradictions_are_one_sentence() -> None:
    with pytest.raises(UserError, match="there is nothing to compare on"):
        pinoise.compare()
    with pytest.raises(UserError, match="unknown embedding 'both'"):
        pinoise.compare("wine", embedding="both")
    with pytest.raises(UserError, match="unknown method 'scraf': did you mean 'scarf'"):
        pinoise.compare("wine", methods=["scraf"])
