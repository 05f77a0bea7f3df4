"""What a stranger meets first."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
import typer

from pinoise.choices import EMBEDDINGS
from pinoise.cli.app import app
from pinoise.experiments.recipes import RECIPES, SUITES

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
        ("compare", "suite", tuple(SUITES)),
    ],
)
def test_the_help_of_a_choice_lists_what_there_is(verb: str, option: str, names: tuple[str, ...]) -> None:
    words = re.findall(r"[\w.:-]+\w", described(verb, option))
    assert [name for name in names if name not in words] == []


def test_importing_the_command_imports_nothing_heavy() -> None:
    code = "import sys; import pinoise.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"torch", "sklearn", "pyarrow", "scipy", "pandas", "numpy", "lightning_fabric"} & set(loaded)


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
        (["compare", "--suite"], r"--suite.* requires an argument"),
        (["compare", "--data", "digits", "--seeds", "two"], r"--seeds.*integer"),
        (["datasets", "--jsn"], r"No such option: --jsn .*--json"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence(
    pinoise: Callable[..., Any], arguments: list[str], sentence: str
) -> None:
    assert re.search(sentence, pinoise(*arguments).sentence)
