"""What the command says: abbreviations where they are first used, one epoch, and how long things take."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_scores_are_explained_below_every_table(
    pinoise: Callable[..., Any], people: Path, folder: Path, tiny: list[str]
) -> None:
    assert pinoise("train", "--data", people, "--label", "group", "--out", "run", *tiny).code == 0
    told = pinoise("evaluate", "run").out
    compared = pinoise("compare", "--data", people, "--label", "group", "--methods", "raw", "--seeds", "1", *tiny).out
    for shown in (told, compared):
        words = " ".join(shown.split())
        assert "SR: the paper's softmax regression; LR: logistic regression to convergence" in words
        assert "few-label: LR on 10 labels per class" in words


def test_one_epoch_is_not_epochs(pinoise: Callable[..., Any], folder: Path, tiny: list[str]) -> None:
    short = [*tiny, "--epochs", "1"]
    told = pinoise("train", "--data", "wine", "--out", "run", *short)
    again = pinoise("train", "--resume", "run")
    for result in (told, again):
        assert not re.search(r"\b1 (epochs|steps)\b", result.out + result.err)
    assert "run: 1 epoch, 1 step" in told.out


def test_the_demo_says_how_long_it_takes(pinoise: Callable[..., Any]) -> None:
    shown = " ".join(pinoise("demo", "--help").out.split())
    assert "in one to three minutes with three seeds" in shown
    readme = Path(__file__).parents[2] / "README.md"
    assert "about a minute" not in shown + readme.read_text(encoding="utf-8")
