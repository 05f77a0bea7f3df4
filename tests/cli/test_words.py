"""What the command says: abbreviations where they are first used, one epoch, and how long things take."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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


def test_embed_says_which_columns_it_writes(pinoise: Callable[..., Any]) -> None:
    shown = " ".join(re.sub(r"[│\s]+", " ", pinoise("embed", "--help").out).split())
    assert (
        "the standardised features under their own names, and beside them the learned ones: `pinda0`"
        in shown.replace("pinda0", "`pinda0`").replace("``", "`")
    )


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_an_encoder_of_ones_own_is_taken_by_its_flag(
    pinoise: Callable[..., Any], folder: Path, tiny: list[str], verb: str
) -> None:
    net = "import torch\n\n\ndef make(shape):\n    open('made', 'w').close()\n    net = torch.nn.Linear(shape[0], 3)\n"
    (folder / f"net_{verb}.py").write_text(f"{net}    net.out_features = 3\n    return net\n")
    where = ["--out", "run"] if verb == "train" else ["--methods", "pinda", "--seeds", "1"]
    result = pinoise(
        verb, "--data", "wine", "--encoder", f"net_{verb}:make", "--epochs", "1", "--device", "cpu", *where
    )
    assert result.code == 0, result.err
    assert (folder / "made").exists()
