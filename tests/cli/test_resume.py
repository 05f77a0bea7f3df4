"""A run that is stopped goes on, and a run folder that is damaged says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.commands import ended, start

Command = Callable[..., Any]


def weights(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in ("encoder.safetensors", "noise.safetensors")]


def test_resuming_a_finished_run_changes_nothing(pinoise: Command, digits_run: Path) -> None:
    before = weights(digits_run)
    result = pinoise("train", "--resume", digits_run)
    assert result.code == 0
    assert "already done: 6 steps" in result.err
    assert weights(digits_run) == before


def test_a_finished_run_goes_on_for_more_epochs(
    pinoise: Command, folder: Path, digits_run: Path, tiny: list[str]
) -> None:
    assert pinoise("train", "--resume", digits_run, "--epochs", "4").code == 0
    assert yaml.safe_load((digits_run / "config.yaml").read_text())["training"]["epochs"] == 4
    same = ["--data", "digits", "--rows", "200", "--batch-size", "64", *tiny, "--epochs", "4"]
    assert pinoise("train", "--out", "whole", *same).code == 0
    assert weights(digits_run) == weights(folder / "whole")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seed", "3"], "may be given, not training.seed."),
        (["--set", "encoder.hidden=8"], "may be given, not encoder.hidden."),
        (["--out", "x"], "leave out --out and --config"),
        (["--epochs", "0"], "'training.epochs' is 0"),
        (["--epochs", "1"], "has trained for"),
    ],
)
def test_resume_keeps_the_settings_of_the_run(
    pinoise: Command, digits_run: Path, arguments: list[str], sentence: str
) -> None:
    before = (digits_run / "config.yaml").read_bytes()
    assert sentence in pinoise("train", "--resume", digits_run, *arguments).sentence
    assert (digits_run / "config.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("config.yaml", "a: [", "config.yaml is not valid YAML"),
        ("config.yaml", "format: 6\ntraining: {epoch: 2}", "unknown setting 'training.epoch'"),
        ("data.json", "{", "data.json is not valid JSON"),
        ("data.json", None, "data.json is missing"),
        ("encoder.safetensors", "cut", "encoder.safetensors cannot be read as safetensors"),
        ("noise.safetensors", None, "noise.safetensors is missing: train to the end first, or resume the run"),
    ],
)
def test_a_damaged_run_folder_is_one_sentence(
    pinoise: Command, folder: Path, digits_run: Path, file: str, content: str | None, sentence: str
) -> None:
    path = digits_run / file
    if content is None:
        path.unlink()
    elif content == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        path.write_text(content)
    assert sentence in pinoise("embed", digits_run, "--data", "digits", "--out", "e.npy").sentence
    assert not Path("e.npy").exists()


@pytest.mark.parametrize("verb", [["evaluate"], ["embed", "--data", "digits", "--out", "e.npy"], ["train", "--resume"]])
def test_a_folder_that_is_not_there_is_one_sentence(pinoise: Command, folder: Path, verb: list[str]) -> None:
    assert "nowhere is not a" in pinoise(*verb, "nowhere").sentence


@pytest.mark.processes
def test_output_that_nobody_reads_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "pinoise", "datasets"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert process.stderr == b""
    assert process.returncode == 1


@pytest.mark.processes
def test_a_process_of_the_module_is_the_same_command(pinoise_process: Command, folder: Path) -> None:
    np.save("x.npy", np.full((3, 2), np.inf))
    assert pinoise_process("train", "--data", "x.npy", "--out", "r").sentence.startswith("x.npy has inf in row 0")
    assert not Path("r").exists()


@pytest.mark.processes
def test_output_in_an_old_code_page_is_no_error() -> None:
    done = ended(start("datasets", environ={"PYTHONIOENCODING": "ascii"}))
    assert "digits" in done.out
    assert (done.code, done.err) == (0, "")
