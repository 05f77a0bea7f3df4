"""A process of several that hangs: the command ends within a stated time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.commands import ended, start, until
from tests.faults.commands import children_of, gone
from tests.faults.families import TRAININGS
from tests.faults.states import newest_step

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux"),
    pytest.mark.slow,
    pytest.mark.processes,
]


def test_a_process_that_hangs_ends_the_command_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "2")  # of torch's agent, before it kills what does not end
    flags = [*TRAININGS["two processes"].flags, "--epochs", "100000", "--set", "training.wait=4"]
    process = start("train", "--out", "run", *flags, where=tmp_path)
    until(process, tmp_path / "run/checkpoints/previous.ckpt")
    group = children_of(process.pid)
    os.kill(group[1], signal.SIGSTOP)
    done = ended(process)
    assert done.sentence == (
        "another of the 2 processes that train together gave no sign of life for 4 s (training.wait); "
        "go on from the last checkpoint with: pinoise train --resume run"
    )
    gone(group, limit=0)
    assert newest_step(tmp_path / "run") > 0
