"""Variables that schedulers and launchers leave behind: only those of a launcher that started this process count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pinoise import PiNDA
from pinoise.training.config import TrainingSettings
from pinoise.training.processes import is_first
from pinoise.training.run import machine_of

STRAY: list[dict[str, str]] = [
    {"LOCAL_RANK": "1"},
    {"LOCAL_RANK": "x"},
    {"RANK": "3"},
    {"RANK": ""},
    {"RANK": "x", "WORLD_SIZE": "y", "LOCAL_WORLD_SIZE": "z"},
    {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "banana"},
    {"TORCHELASTIC_RUN_ID": "left over"},
    {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"},
    {"SLURM_NTASKS": "4", "SLURM_PROCID": "2", "SLURM_LOCALID": "2", "SLURM_NODEID": "0", "SLURM_NNODES": "1"},
    {"SLURM_NTASKS": "x", "SLURM_PROCID": "x", "SLURM_JOB_NAME": "train"},
    {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "3"},
    {"LSB_JOBID": "1", "LSB_DJOB_RANKFILE": "/nowhere", "JSM_NAMESPACE_RANK": "2", "JSM_NAMESPACE_SIZE": "4"},
    {"JSM_NAMESPACE_RANK": "x"},
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMI_RANK": "1", "PMI_SIZE": "2"},
    {"TPU_WORKER_ID": "1", "XRT_TPU_CONFIG": "x", "KUBERNETES_PORT": "x", "NODE_RANK": "x", "GROUP_RANK": "x"},
    {"PINOISE_AGENT": "1"},
    {"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_ERROR_FILE": "/nowhere"},
]


@pytest.mark.parametrize("stray", STRAY, ids=str)
def test_a_fit_and_a_run_in_one_process_do_not_see_them(stray: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stray.items():
        monkeypatch.setenv(name, value)
    assert is_first()
    for together in (False, True):
        machine = machine_of(TrainingSettings(device="cpu"), together=together)
        assert (machine.size, machine.rank, str(machine.device)) == (1, 0, "cpu")


def test_a_fit_under_slurm_equals_the_fit_without(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = PiNDA(4, hidden=8, epochs=1, batch_size=20, random_state=0, device="cpu")
    before = model.fit_transform(x)
    monkeypatch.setenv("SLURM_NTASKS", "4")
    np.testing.assert_array_equal(model.fit_transform(x), before)


@pytest.mark.parametrize("stray", [STRAY[0], STRAY[8]], ids=str)
def test_a_mistake_is_never_mute(stray: dict[str, str]) -> None:
    found = command("train", "--data", "digits", environ=stray)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("pinoise: --out is missing")


def test_variables_that_are_no_numbers_do_not_stop_an_import() -> None:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "JSM_NAMESPACE_RANK")
    bad = ("train", "--data", "digits", "--out", "x", "--device", "cpu:banana")
    found = command(*bad, environ=dict.fromkeys(names, "x"))
    assert found.returncode == 2
    assert found.stderr.startswith("pinoise: device 'cpu:banana' has an index: only 'cuda' takes one")
    assert found.stderr.count("\n") == 1


def test_a_later_process_of_a_group_is_mute() -> None:
    group = {"TORCHELASTIC_RUN_ID": "r", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    found = command("train", "--data", "digits", environ={**group, "MASTER_PORT": "29500"})
    assert (found.returncode, found.stderr) == (2, "")


def test_machines_that_do_not_come_are_named_in_time(tmp_path: Path) -> None:
    run = ["train", "--data", "digits", "--device", "cpu", "--out", str(tmp_path / "run"), "--nodes", "2"]
    found = command(*run, environ={})
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("pinoise: --nodes 2 needs --rendezvous HOST:PORT, the address of one of")
    found = command(*run, "--rendezvous", "127.0.0.1:29437", "--set", "training.wait=1", environ={})
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        "pinoise: 2 machines did not meet at 127.0.0.1:29437 in 1 s: start the command on all of them in time, or "
        "raise training.wait.\n"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder in use cannot be deleted")
def test_a_deleted_current_folder_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = f"import os, sys, runpy; os.rmdir({str(folder)!r}); sys.argv[1:] = ['datasets']; runpy.run_module('pinoise')"
    found = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert found.stderr == "pinoise: the current folder does not exist any more: change to another one.\n"


def command(*arguments: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pinoise", *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )
