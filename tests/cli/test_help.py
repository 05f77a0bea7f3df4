"""What a stranger meets first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from pinoise import load_run
from pinoise.choices import EMBEDDINGS
from pinoise.cli.app import app
from pinoise.experiments.recipes import RECIPES

VERBS = [
    "demo",
    "train",
    "embed",
    "predict",
    "evaluate",
    "export",
    "compare",
    "reproduce",
    "report",
    "cost",
    "datasets",
]


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(pinoise: Callable[..., Any], verb: str) -> None:
    result = pinoise(verb, "--help")
    assert result.code == 0
    assert f"Example: pinoise {verb}" in result.out


def test_the_help_lists_the_verbs_in_the_order_of_use(pinoise: Callable[..., Any]) -> None:
    for arguments in (["--help"], []):
        result = pinoise(*arguments)
        listed = re.findall(r"^\W+(\w+)  ", result.out, re.MULTILINE)
        assert [word for word in listed if word in VERBS] == VERBS
        assert result.err == ""


def test_the_version_is_the_packages(pinoise: Callable[..., Any]) -> None:
    assert pinoise("--version").out.strip() == version("pinoise")


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_shows_every_default(pinoise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = re.sub(r"[│\s]+", " ", pinoise(verb, "--help").out)
    command: Any = typer.main.get_command(app)
    for parameter in command.commands[verb].params:
        told = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        if told not in (None, False):
            assert re.search(rf"\[default: \(?{re.escape(str(told))}\)?\]", shown), parameter.name


def test_the_catalogue_says_where_data_comes_from(
    pinoise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    found = {entry["name"]: entry for entry in json.loads(pinoise("datasets", "--json").out)}
    assert found["digits"]["availability"] == "here"
    assert found["cifar10"]["availability"] == "download"
    for entry in found.values():
        without_address = any(file["url"] is None for file in entry["files"])
        assert entry["found"] or (entry["availability"] == "your files") == without_address


def test_a_list_may_be_written_with_commas(pinoise: Callable[..., Any], tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b,c,d\n" + "".join(f"{i},{i % 7},{i * i % 11},{i % 3}\n" for i in range(40)))
    for number, written in enumerate(("data.drop=a,b", "data.drop=[a, b]")):
        run = tmp_path / str(number)
        result = pinoise(
            "train", "--data", table, "--epochs", "1", "--set", "encoder.hidden=4", "--set", written, "--out", run
        )
        assert result.code == 0, result.err
        assert list(load_run(run).settings.data.drop) == ["a", "b"]


@pytest.mark.processes
def test_a_shell_completes_verbs(pinoise: Callable[..., Any]) -> None:
    asked = {"_PINOISE_COMPLETE": "complete_bash", "COMP_WORDS": "pinoise tra", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "pinoise"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["train"]


def described(verb: str, option: str) -> str:
    command: Any = typer.main.get_command(app)
    return str(next(parameter.help for parameter in command.commands[verb].params if parameter.name == option))


@pytest.mark.parametrize(
    ("verb", "option", "names"),
    [
        ("train", "method", ("simclr", "dino", "package.module:name")),
        ("train", "augment", ("scarf", "background", "package.module:name")),
        ("train", "generator", ("auto", "unet")),
        ("train", "pairing", ("auto", "compose")),
        ("compare", "methods", tuple(RECIPES)),
        ("compare", "embedding", EMBEDDINGS),
    ],
)
def test_the_help_of_a_choice_lists_what_there_is(verb: str, option: str, names: tuple[str, ...]) -> None:
    words = re.findall(r"[\w.:-]+\w", described(verb, option))
    assert [name for name in names if name not in words] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], r"No such command 'trian'\. Did you mean 'train'\?; 'pinoise --help' lists"),
        (["train", "--epcohs", "3"], r"No such option: --epcohs .*--epochs.*; 'pinoise train --help' lists"),
        (["train", "--epochs", "many"], r"--epochs.*integer"),
        (["train", "--epochs"], r"--epochs.* requires an argument"),
        (["train", "digits"], r"unexpected extra argument.*digits"),
        (["embed"], r"Missing argument 'DIR'"),
        (["embed", "runs/x", "--out", "x.npy"], r"Missing option '--data'"),
        (["compare", "--data"], r"--data"),
        (["compare", "--data", "digits", "--seeds", "two"], r"--seeds is .two.: give a number of seeds"),
        (["datasets", "--jsn"], r"No such option: --jsn .*--json"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    pinoise: Callable[..., Any], arguments: list[str], sentence: str
) -> None:
    assert re.search(sentence, pinoise(*arguments).sentence)
