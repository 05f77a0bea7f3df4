"""A process of a group that hangs: the others end within a stated time, and name it."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from tests.commands import ended, start, until
from tests.faults.commands import ROOT, children_of, gone
from tests.faults.families import TRAININGS
from tests.faults.states import newest_step

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_hangs_is_named_and_the_others_end(rank: int, tmp_path: Path) -> None:
    flags = [*TRAININGS["two processes"].flags, "--epochs", "100000"]
    hasty = ("-m", "tests.faults.hasty")
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    process = start("train", "--out", "run", *flags, where=tmp_path, environ={"PYTHONPATH": path}, python=hasty)
    until(process, tmp_path / "run/checkpoints/previous.ckpt")
    group = [process.pid, *children_of(process.pid)]
    hanging, other = group[rank], group[1 - rank]
    os.kill(hanging, signal.SIGSTOP)
    try:
        gone([other], limit=60)  # the first process waits 20 s for those that it started, and then kills them
    finally:
        for pid in group:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)
    done = ended(process)
    said = [line for line in done.err.splitlines() if not line.startswith(("note: ", "epoch "))]
    assert said == [
        f"pinoise: rank {rank} (process {hanging} on {socket.gethostname()}), one of 2 processes that train together, "
        "ended or cannot be reached, so this one stops; go on from the last checkpoint with: pinoise train --resume run"
    ]
    assert newest_step(tmp_path / "run") > 0
