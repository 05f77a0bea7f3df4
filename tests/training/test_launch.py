"""Real processes that train together, however they were started: by the command, torchrun, or srun's variables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.commands import Result, ended, start, until
from tests.faults.commands import children_of

from pinoise.training.checkpoint import read_checkpoint

pytestmark = [pytest.mark.processes, pytest.mark.slow]

RUN = ["train", "--data", "digits", "--rows", "300", "--device", "cpu", "--batch-size", "64"]
RUN += [word for key in ("encoder.hidden=16", "noise.generator.hidden=16") for word in ("--set", key)]
RUN += ["--set", "training.checkpoint_every=5", "--set", "training.information_draws=0"]
EPOCHS = 60


def end(process: subprocess.Popen[str], code: int = 0) -> Result:
    done = ended(process)
    assert done.code == code, done.err
    return done


def metrics(run: Path) -> list[str]:
    """The lines of metrics.csv without the seconds."""
    return [line.rpartition(",")[0] for line in (run / "metrics.csv").read_text().splitlines()]


def same(one: Path, other: Path) -> None:
    assert metrics(one) == metrics(other)
    weights, others = (load_file(run / "encoder.safetensors") for run in (one, other))
    assert all(torch.equal(others[name], tensor) for name, tensor in weights.items())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that the command trained in two processes."""
    run = tmp_path_factory.mktemp("two") / "run"
    done = end(start(*RUN, "--epochs", EPOCHS, "--devices", 2, "--out", run))
    assert done.out.count(f"{EPOCHS} epochs") == 1
    assert done.err.count(f"epoch {EPOCHS} ") == 1
    assert len(read_checkpoint(run / "checkpoints/last.ckpt").random) == 2
    return run


def test_torchrun_and_srun_train_what_the_command_trains(two: Path, tmp_path: Path) -> None:
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "pinoise")
    end(start(*RUN, "--epochs", EPOCHS, "--out", tmp_path / "torchrun", python=torchrun))
    same(two, tmp_path / "torchrun")
    srun = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": str(os.getpid())}
    flags = ["--epochs", EPOCHS, "--devices", 2, "--out", tmp_path / "srun"]
    places = [{"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)} for number in range(2)]
    tasks = [start(*RUN, *flags, environ=srun | place) for place in places]
    outputs = [end(task).out for task in tasks]
    assert [output.count(f"{EPOCHS} epochs") for output in outputs] == [1, 0]
    same(two, tmp_path / "srun")


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_a_killed_process_is_started_again_and_ends_in_the_same_weights(two: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(*RUN, "--epochs", EPOCHS, "--devices", 2, "--max-restarts", 1, "--out", run)
    until(process, run / "checkpoints/last.ckpt")
    os.kill(children_of(process.pid)[1], signal.SIGKILL)
    assert "resuming after step " in end(process).err
    same(two, run)


def test_a_terminated_run_goes_on_in_two_processes_and_then_in_one(two: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(*RUN, "--epochs", EPOCHS, "--devices", 2, "--out", run)
    until(process, run / "checkpoints/last.ckpt")
    process.send_signal(signal.SIGTERM)
    assert end(process, code=130).err.count("all saved; go on with: pinoise train --resume") == 1
    end(start("train", "--resume", run))
    same(two, run)
    end(start("train", "--resume", run, "--epochs", EPOCHS + 1, "--devices", 1))
    assert len(read_checkpoint(run / "checkpoints/last.ckpt").random) == 1
    assert metrics(run)[: EPOCHS + 1] == metrics(two)


def test_a_mistake_in_the_processes_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    flags = ["--device", "cpu", "--devices", 2, "--out", tmp_path / "run"]
    assert ended(start("train", "--data", tmp_path / "a.csv", *flags)).sentence
