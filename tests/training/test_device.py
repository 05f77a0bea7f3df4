from __future__ import annotations

import platform
import subprocess
import sys

import pytest
import torch

from pinoise.errors import UserError
from pinoise.training.config import TrainingSettings
from pinoise.training.processes import ALONE, Group, adopt_srun, find_group, is_first
from pinoise.training.run import machine_of
from pinoise.training.together import join

TORCHRUN = {
    **{"TORCHELASTIC_RUN_ID": "run", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "RANK": "3", "LOCAL_RANK": "1"},
    **{"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"},
}
SRUN = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "n[7-9],m"}


def test_a_group_is_that_of_its_launcher() -> None:
    assert find_group(TORCHRUN) == Group(rank=3, local_rank=1, size=4, per_node=2)
    assert not is_first(environ=TORCHRUN)
    process = dict(SRUN)
    adopt_srun(2, 1, process)
    assert (find_group(process), process["MASTER_ADDR"]) == (Group(1, 1, 2, 2), "n7")
    adopt_srun(1, 1, process := dict(SRUN))  # a process that srun started beside others, to train alone
    assert find_group(process) is ALONE


@pytest.mark.parametrize(
    ("devices", "nodes", "environ", "sentence"),
    [
        (4, 1, SRUN, "srun started 2 processes on 1 node"),
        (1, 2, SRUN, "srun started 2 processes on 1 node"),
        (2, 1, {**SRUN, "SLURM_PROCID": "x"}, "SLURM_PROCID is 'x'"),
        (2, 1, {**SRUN, "SLURM_STEP_NUM_TASKS": ""}, "SLURM_STEP_NUM_TASKS is ''"),
        (1, 1, {**TORCHRUN, "RANK": "x"}, "RANK is 'x'"),
        (1, 1, {**TORCHRUN, "WORLD_SIZE": "9" * 5000}, "WORLD_SIZE is"),
    ],
)
def test_numbers_that_do_not_match_are_one_sentence(
    devices: int, nodes: int, environ: dict[str, str], sentence: str
) -> None:
    def find() -> Group:
        adopt_srun(devices, nodes, process := dict(environ))
        return find_group(process)

    with pytest.raises(UserError, match=sentence) as caught:
        find()
    assert "\n" not in str(caught.value)


def test_a_fit_in_memory_trains_alone_even_under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert machine_of(TrainingSettings(device="cpu")).size == 1
    with pytest.raises(UserError, match=r"training\.devices is 2 and training\.nodes 1: only 'pinoise train'"):
        machine_of(TrainingSettings(device="cpu", devices=2))


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for device in ("auto", "cuda"):
        with pytest.raises(UserError, match=r"2 processes were asked for, but this machine has 1 GPU\(s\)"):
            join(Group(0, 0, 2, 2), TrainingSettings(device=device))
    with pytest.raises(UserError, match="'cuda:0' is one GPU, but 2 processes were asked for"):
        join(Group(0, 0, 2, 2), TrainingSettings(device="cuda:0"))


def test_several_processes_cannot_share_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for device in ("auto", "mps"):
        with pytest.raises(UserError, match="'mps' supports one process only"):
            join(Group(0, 0, 2, 2), TrainingSettings(device=device))


FAULTS = """
import resource, torch
from pinoise.modes import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        blocks = [torch.ones(1 << 20) for _ in range(14)]  # of 4 MB
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.processes
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library gives memory back at once")
def test_freed_memory_is_used_again_without_asking_the_system() -> None:
    # Without it about half of such processes have tens of thousands: it depends on what was freed before.
    asked = [sys.executable, "-c", FAULTS]
    several = [subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    assert all(int(process.communicate()[0]) < 100 for process in several)
