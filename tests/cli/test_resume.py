"""A run that is stopped goes on, and a run folder that is damaged says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

Command = Callable[..., Any]
LONG = ["--data", "digits", "--rows", "256", "--batch-size", "64", "--set", "training.checkpoint_every=50"]


def weights(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in ("encoder.safetensors", "noise.safetensors")]


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_run_stopped_by_a_signal_resumes_to_the_same_weights(
    pinoise: Command, folder: Path, tiny: list[str], environment: dict[str, str]
) -> None:
    epochs = ["--epochs", "150"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pinoise", "train", *LONG, "--out", "stopped", *tiny, *epochs],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("epoch "):
            process.send_signal(signal.SIGINT)
            break
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert "all saved; go on with: pinoise train --resume stopped" in rest
    assert not (folder / "stopped/encoder.safetensors").exists()

    resumed = pinoise("train", "--resume", "stopped")
    assert resumed.code == 0
    assert "resuming after step" in resumed.err
    assert pinoise("train", *LONG, "--out", "whole", *tiny, *epochs).code == 0
    assert weights(folder / "stopped") == weights(folder / "whole")


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
def test_output_that_nobody_reads_is_no_error(environment: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "pinoise", "datasets"],
        env=environment,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert process.stderr == b""
    assert process.returncode == 1


@pytest.mark.processes
def test_a_process_of_the_module_is_the_same_command(environment: dict[str, str], folder: Path) -> None:
    np.save("x.npy", np.full((3, 2), np.inf))
    train = [sys.executable, "-m", "pinoise", "train", "--data", "x.npy", "--out", "r"]
    process = subprocess.run(train, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith("pinoise: x.npy has inf in row 0")
    assert process.stderr.count("\n") == 1
    assert not Path("r").exists()


@pytest.mark.processes
def test_output_in_an_old_code_page_is_no_error(environment: dict[str, str]) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "pinoise", "datasets"],
        env={**environment, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "digits" in process.stdout
    assert process.stderr == ""
