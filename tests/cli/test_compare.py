"""The comparison as a user runs it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinoise.cli.compare import chosen_seeds
from pinoise.cli.variadic import spread
from pinoise.experiments import compare as _  # noqa: F401 the module below must be loaded

Command = Callable[..., Any]


def test_the_json_has_a_row_for_every_method_and_seed(pinoise: Command, tiny: list[str]) -> None:
    result = pinoise(
        "compare", "--data", "digits", "--rows", 100, "--methods", "fixed", "scarf", "--seeds", "3,5", "--json", *tiny
    )
    document = json.loads(result.out)
    assert [(row["method"], row["seed"]) for row in document["rows"]] == [
        (method, seed) for method in ("raw", "untrained", "fixed", "scarf") for seed in (3, 5)
    ]
    for row in document["rows"]:
        assert {"data", "method", "seed", "knn", "sr", "lr", "few", "seconds"} <= row.keys()
        assert all(0 <= row[score] <= 1 for score in ("knn", "sr", "lr", "few"))
    assert document["verdicts"]["digits"].startswith("On digits, ")
    assert document["settings"]["training"]["epochs"] == 2
    assert document["environment"]["packages"]["torch"]


def test_the_table_fits_a_narrow_terminal_and_loses_no_figure(
    pinoise: Command, people: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    labelled = ["--data", "people.csv", "wine", "--label", "group"]
    result = pinoise("compare", *labelled, "--methods", "fixed", "pinda-paper", "--seeds", 2, *tiny)
    assert result.code == 0
    table = [line for line in result.out.splitlines() if " ±" in line and "standard" not in line]
    assert [line.split("  ")[0] for line in table] == 2 * [
        *("raw features", "untrained encoder", "random noise (σ = 1)", "PiNDA (paper)"),
    ]
    assert all(len(re.findall(r"\d+\.\d ±\d+\.\d", line)) == 4 for line in table)
    assert max(len(line.rstrip()) for line in table) < 80
    assert "…" not in result.out
    assert "On people, " in result.out
    assert "On wine, " in result.out


def test_ctrl_c_prints_what_is_done(pinoise: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["pinoise.experiments.compare"]
    score, calls = module.score, 0

    def stop_at_third(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return score(*arguments, **options)

    monkeypatch.setattr(module, "score", stop_at_third)
    result = pinoise("compare", "--data", "digits", "--rows", 50, "--methods", "fixed", "--seeds", 1, *tiny)
    assert result.code == 130
    assert "stopped after 2 of 3 fits" in result.err
    assert "untrained encoder" in result.out
    assert "random noise" not in result.out


def test_plain_output_does_not_flood(pinoise: Command, tiny: list[str]) -> None:
    result = pinoise("compare", "--data", "wine", "--methods", "fixed", "--seeds", 2, *tiny)
    assert sum(" · seed " in line for line in result.err.splitlines()) < 6


@pytest.mark.parametrize(
    "given",
    [
        ["--methods", "raw", "fixed", "--seeds", "2"],
        ["--methods", "raw,fixed", "--seeds=2"],
        ["--methods=raw,fixed", "--seeds", "2"],
        ["--methods", "raw", "--methods", "fixed", "--seeds", "2"],
    ],
)
def test_lists_may_be_written_in_any_way(given: list[str]) -> None:
    assert spread(given) == ["--methods", "raw", "--methods", "fixed", "--seeds", "2"]


def test_names_of_files_keep_their_commas() -> None:
    assert spread(["--data", "a,b.csv", "c.csv", "--json"]) == ["--data", "a,b.csv", "--data", "c.csv", "--json"]


def test_one_number_is_how_many_seeds_and_several_are_the_seeds() -> None:
    assert chosen_seeds(None) == chosen_seeds([3]) == [0, 1, 2]
    assert chosen_seeds([7, 9]) == [7, 9]
