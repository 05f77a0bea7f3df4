"""The comparison as a user runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_diabetes

from pinoise.choices import SCORES
from pinoise.cli.compare import _print_ranking
from pinoise.experiments import scoring
from pinoise.experiments.results import Line
from pinoise.training.config import Settings

Command = Callable[..., Any]


def test_the_json_has_a_row_for_every_method_and_seed(pinoise: Command, tiny: list[str]) -> None:
    asked = ["--data", "digits", "--data", "wine", "--methods", "fixed,scarf,pinda", "--seeds", "3,5"]
    result = pinoise("compare", *asked, "--rows", 100, "--json", *tiny)
    document = json.loads(result.out)
    assert document.keys() == {
        *("rows", "ranks", "significance", "verdicts"),
        *("embedding", "steps", "settings", "environment"),
    }
    assert [(row["data"], row["method"], row["seed"]) for row in document["rows"]] == [
        (data, method, seed)
        for data in ("digits", "wine")
        for method in ("raw", "untrained", "fixed", "scarf", "pinda")
        for seed in (3, 5)
    ]
    for row in document["rows"]:
        further = {"data", "method", "seed", "embedding", "seconds", "flags", "few_draws", "measured"}
        assert row.keys() == {*SCORES, *further}
        assert all(0 <= row[score] <= 1 for score in SCORES)
        assert row["few"] == pytest.approx(sum(row["few_draws"]) / 10)
        assert row["embedding"] == "joined"
    for score in SCORES:
        assert document["ranks"][score].keys() == {"raw", "fixed", "scarf", "pinda"}
        assert sum(document["ranks"][score].values()) == 10
        against = document["significance"]["over_sets"][score]
        assert [item["rival"] for item in against] == ["raw", "untrained", "fixed", "scarf"]
        assert {item["method"] for item in against} == {"pinda"}
    assert document["significance"]["within_sets"].keys() == {"digits", "wine"}
    assert document["verdicts"]["digits"].startswith("On digits, ")
    assert document["settings"]["training"]["epochs"] == 2
    assert (document["embedding"], document["steps"]) == ("joined", None)
    assert document["environment"]["packages"]["torch"]


def test_what_was_fitted_before_is_not_fitted_again(
    pinoise: Command, tiny: list[str], fits: list[Settings], cells: Path
) -> None:
    wine = ["compare", "--data", "wine", "--batch-size", 64, "--seeds", 1, "--json", *tiny]
    first = json.loads(pinoise(*wine, "--methods", "fixed").out)["rows"]
    assert len(fits) == 1
    assert len(list(cells.glob("*/about.json"))) == 3  # raw, untrained and fixed, where PINOISE_CACHE says
    more = json.loads(pinoise(*wine, "--methods", "fixed,scarf").out)["rows"]
    assert len(fits) == 2
    assert more[:3] == first  # with the seconds that it took then

    pinoise(*wine, "--methods", "fixed", "--fresh")
    assert len(fits) == 3
    assert len(list(cells.glob("*/about.json"))) == 4


def test_the_table_fits_a_narrow_terminal_and_loses_no_figure(
    pinoise: Command, people: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    labelled = ["--data", "people.csv", "--data", "wine", "--label", "group"]
    longer = ["--epochs", 12, "--batch-size", 40]
    result = pinoise("compare", *labelled, "--methods", "fixed,pinda-paper", "--seeds", 2, *tiny, *longer)
    assert result.code == 0
    table = [line for line in result.out.splitlines() if " ±" in line and "standard" not in line]
    assert [line.split("  ")[0] for line in table] == 2 * [
        *("raw features", "untrained encoder", "random noise (σ = 1)", "PiNDA (paper)"),
    ]
    assert all(len(re.findall(r"\d+\.\d ±\d+\.\d", line)) in (4, 5) for line in table)
    assert max(len(line.rstrip()) for line in table) < 90
    assert "…" not in result.out
    assert "On people, " in result.out
    assert "On wine, " in result.out


@pytest.mark.parametrize("fresh", [False, True])
def test_ctrl_c_prints_what_is_done_and_the_same_command_goes_on(
    pinoise: Command, tiny: list[str], fresh: bool, fits: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, calls = scoring.embedded, 0

    def stop_at_fourth(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return embedded(*arguments, **options)

    monkeypatch.setattr(scoring, "embedded", stop_at_fourth)
    asked = ["compare", "--data", "digits", "--rows", 50, "--methods", "fixed,scarf", "--seeds", 1, *tiny]
    result = pinoise(*asked, *(["--fresh"] if fresh else []))
    assert result.code == 130
    assert "stopped after 3 of 4 fits" in result.err
    assert ("; the same command goes on from here" in result.err) != fresh
    assert "random noise" in result.out
    assert "SCARF" not in result.out
    assert len(fits) == 2

    again = pinoise(*asked)
    assert again.code == 0
    assert "SCARF" in again.out
    assert len(fits) == (4 if fresh else 3)


def test_what_went_wrong_has_a_column_of_its_own(pinoise: Command, tiny: list[str]) -> None:
    wine = ["compare", "--data", "wine", "--methods", "scarf,pinda-paper", "--seeds", 1, *tiny]
    result = pinoise(*wine, "--set", "noise.initial_scale=0.001", "--epochs", 12)
    health = {line.split("  ")[0]: line.split()[-1] for line in result.out.splitlines() if "  " in line}
    assert health["wine"] == "health"
    assert health["PiNDA (paper)"] == "shrink"
    assert "the learned noise collapsed to almost nothing in PiNDA (paper) (" in result.out


@pytest.mark.parametrize(
    ("methods", "caption"),
    [
        (("scarf", "fixed"), "in few-label SCARF and in kNN random noise (σ = 1) against the method of the row"),
        (("scarf", "fixed", "pinda"), "PiNDA against the method of the row"),
    ],
)
def test_the_caption_of_the_ranks_names_the_method_of_each_column(
    methods: tuple[str, ...], caption: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = {"scarf": (90.0, 70.0), "fixed": (80.0, 75.0), "pinda": (60.0, 60.0), "raw": (95.0, 50.0)}
    lines = [
        Line(data, method, dict(zip(("few", "knn"), scores[method], strict=True)), {}, 1.0, ())
        for data in ("wine", "digits")
        for method in ("raw", *methods)
    ]
    _print_ranking(lines)
    printed = capsys.readouterr().out
    assert f"won–lost, p (Wilcoxon): {caption}; Holm" in printed
    subject = "PiNDA" if "pinda" in methods else "SCARF"
    assert f"With few labels {subject} is below raw features on: wine, digits." in printed


@pytest.mark.slow
def test_a_measurement_is_compared_by_r_squared(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    x, y = load_diabetes(return_X_y=True)
    y = y // 20 + 0.5  # few values, so that they can be classes, too
    lines = [",".join(map(str, [*row[:4], value])) for row, value in zip(x, y, strict=True)]
    Path("diabetes.csv").write_text("\n".join(["age,sex,bmi,bp,progression", *lines]) + "\n")
    asked = ["compare", "--data", "diabetes.csv", "--label", "progression", "--seeds", 1, "--epochs", 1]
    asked += ["--set", "encoder.hidden=16"]
    result = pinoise(*asked, "--methods", "fixed", "--json")
    cells = json.loads(result.out)["rows"]
    assert all(cell["measured"] and cell["sr"] is None and 0 < cell["lr"] < 1 for cell in cells)
    printed = pinoise(*asked, "--methods", "fixed").out
    assert re.search(r"kNN R² +ridge R² +few-label R²", printed)
    assert re.search(r"raw features in R²\.", printed)
    assert "R² in percent of the variance (few-label: ridge regression on 50 rows, 10 draws)" in printed
    sentence = pinoise(*asked, "--methods", "forest").sentence
    assert re.search(r"the labels of diabetes are a measurement, and .* tells classes apart: leave it out", sentence)
    assert pinoise(*asked, "--methods", "fixed", "--classes", "--json").code == 0  # every value is a class then
