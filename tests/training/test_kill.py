"""Real processes, killed without warning in the middle of training."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SETTINGS = [
    "--epochs",
    "30",
    "--rows",
    "1500",
    "--set",
    "encoder.hidden=64",
    "--set",
    "noise.generator.hidden=64",
    "--set",
    "training.checkpoint_every=7",
]


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pinoise", "train", *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def kill_after(process: subprocess.Popen[bytes], checkpoint: Path, seconds: float) -> None:
    """Kill once there is a checkpoint newer than the start, a little later than that."""
    began = time.time()
    while not (checkpoint.exists() and checkpoint.stat().st_mtime > began) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "training ended before it could be killed"


def test_a_run_killed_before_its_first_checkpoint_starts_again_to_the_bit_identical_result(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = [
        "--data",
        "digits",
        "--epochs",
        "40",
        "--set",
        "encoder.hidden=64",
        "--set",
        "noise.generator.hidden=64",
    ]
    finish(start(*settings, "--out", str(whole)))
    process = start(*settings, "--out", str(killed))
    metrics = killed / "metrics.csv"
    while not (metrics.exists() and metrics.read_text().count("\n") > 1) and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "training ended before it could be killed"
    assert not list((killed / "checkpoints").glob("*"))

    finish(start("--resume", str(killed)))
    assert_same_runs(whole, killed, epochs=40)


def assert_same_runs(whole: Path, killed: Path, *, epochs: int) -> None:
    for name in ("encoder.safetensors", "noise.safetensors", "standardizer.safetensors"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    columns = [
        [line.rsplit(",", 1)[0] for line in (run / "metrics.csv").read_text().splitlines()] for run in (whole, killed)
    ]
    assert columns[0] == columns[1]  # all but the seconds
    assert len(columns[0]) == epochs + 1


@pytest.mark.usefixtures("real_data")
def test_a_killed_run_resumes_to_the_bit_identical_result(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(start("--data", "hapt561", "--out", str(whole), *SETTINGS))

    seed = random.randrange(10**6)
    print(f"moments of the kills drawn with seed {seed}")
    moments = random.Random(seed)
    kill_after(
        start("--data", "hapt561", "--out", str(killed), *SETTINGS),
        killed / "checkpoints/last.ckpt",
        moments.uniform(0, 0.2),
    )
    kill_after(start("--resume", str(killed)), killed / "checkpoints/last.ckpt", moments.uniform(0, 0.2))
    finish(start("--resume", str(killed)))

    assert_same_runs(whole, killed, epochs=30)
