from __future__ import annotations

import platform
import subprocess
import sys

import pytest
import torch
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.single_device import SingleDeviceStrategy

from pinoise.errors import UserError
from pinoise.training.config import TrainingSettings
from pinoise.training.device import check_device, make_fabric
from pinoise.training.processes import OURS, SIGNS, find_group


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the fourth of four processes, two on each of two nodes."""
    for name, value in {
        "TORCHELASTIC_RUN_ID": "run",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "2",
        "RANK": "3",
        "LOCAL_RANK": "1",
        "GROUP_RANK": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("lightning_fabric.utilities.rank_zero.rank_zero_only.rank", 0)  # restored afterwards


@pytest.mark.usefixtures("torchrun")
def test_the_processes_of_torchrun_count_and_not_the_settings() -> None:
    group = find_group(8, 1)
    assert (group.rank, group.per_node, group.nodes, group.port) == (3, 2, 2, 29500)
    fabric = make_fabric(TrainingSettings(device="cpu"), together=True)
    assert isinstance(fabric.strategy, DDPStrategy)
    assert (fabric.world_size, fabric.global_rank) == (4, 3)


@pytest.mark.usefixtures("torchrun")
def test_a_fit_in_memory_trains_alone_even_under_torchrun() -> None:
    fabric = make_fabric(TrainingSettings(device="cpu"))
    assert isinstance(fabric.strategy, SingleDeviceStrategy)
    assert fabric.world_size == 1


def test_without_torchrun_the_settings_count() -> None:
    assert find_group(2, 1).size == 2
    assert isinstance(make_fabric(TrainingSettings(device="cpu"), together=True).strategy, SingleDeviceStrategy)


def test_a_world_size_that_others_left_behind_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert find_group(1, 1).size == 1


@pytest.mark.parametrize(
    ("settings", "variables", "alone"),
    [
        ({}, {}, True),
        ({}, {"LOCAL_RANK": "1", "SLURM_PROCID": "1"}, True),  # as schedulers leave them in every shell
        ({}, {"WORLD_SIZE": "2"}, False),
        ({}, {OURS: "1:1:1:0"}, False),
        ({"devices": 2}, {}, False),
        ({"nodes": 2}, {}, False),
    ],
)
def test_a_process_is_alone_without_settings_and_signs_of_others(
    settings: dict[str, int], variables: dict[str, str], alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*SIGNS, *variables):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert TrainingSettings.model_validate(settings).is_alone == alone


def test_a_run_of_one_process_does_not_ask_for_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SIGNS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pinoise.training.device.find_group", lambda *_: pytest.fail("asked"))
    assert make_fabric(TrainingSettings(device="cpu"), together=True).world_size == 1


def test_a_fit_in_memory_refuses_several_devices() -> None:
    with pytest.raises(UserError, match=r"training\.devices is 2 and training\.nodes 1: only 'pinoise train'"):
        make_fabric(TrainingSettings(device="cpu", devices=2))


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for device in ("auto", "cuda"):
        with pytest.raises(UserError, match=r"2 processes were asked for, but this machine has 1 GPU\(s\)"):
            make_fabric(TrainingSettings(device=device, devices=2), together=True)


def test_several_processes_cannot_share_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for device in ("auto", "mps"):
        with pytest.raises(UserError, match="'mps' supports one process only"):
            make_fabric(TrainingSettings(device=device, devices=2), together=True)


def test_an_unknown_or_absent_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        check_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="is not available on this machine: use 'cpu' or 'auto'"):
        check_device("cuda")


FAULTS = """
import resource, torch
from pinoise.training.device import keep_freed_memory

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
