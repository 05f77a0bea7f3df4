"""Real processes that are interrupted, hung up on, or left by another process of their group."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import until
from tests.faults.commands import children_of

from pinoise.training.checkpoint import LAST, read_checkpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")

FLAGS = ["--data", "digits", "--epochs", "100000", "--device", "cpu", "--set", "training.checkpoint_every=5"]
FLAGS += ["--set", "encoder.hidden=32", "--set", "noise.generator.hidden=32"]


def start(run: Path, *flags: str, launcher: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "pinoise", "train", "--out", str(run), *FLAGS, *flags],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen_to_hangups,
    )


def _listen_to_hangups() -> None:
    """Undo what ``nohup`` may have set for the tests."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors.replace('Traceback (most recent call last):\n  File "<frozen runpy>"', "")
    return process.returncode, errors


def said(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if not line.startswith(("note: ", "epoch "))]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_the_command_and_is_named(rank: int, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(run, "--devices", "2")
    until(process, run / "checkpoints" / LAST)
    children = children_of(process.pid)
    os.kill(children[rank], signal.SIGKILL)
    code, errors = ended(process)
    assert (code, said(errors)) == (
        2,
        [
            f"pinoise: rank {rank} (process {children[rank]}), one of 2 processes, was killed by SIGKILL; "
            f"go on from the last checkpoint with: pinoise train --resume {run}"
        ],
    )
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_partner_of_torchrun_says_so_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(run, launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"))
    until(process, run / "checkpoints" / LAST)
    os.kill(children_of(process.pid)[1], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("ended or cannot be reached, so this one stops") == 1
    assert "gloo" not in errors


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="fills the disk of another process")
def test_a_disk_that_is_full_for_the_first_process_ends_both_with_its_sentence(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(run, "--devices", "2")
    until(process, run / "checkpoints" / LAST)
    children = children_of(process.pid)
    resource.prlimit(children[0], resource.RLIMIT_FSIZE, (20_000, 20_000))
    code, errors = ended(process)
    assert code == 2
    (sentence,) = said(errors)
    assert f"a checkpoint cannot be written to {run / 'checkpoints'} (File too large): free some space" in sentence
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert read_checkpoint(run / "checkpoints" / LAST).step > 0


DROPPED = """
import os, signal, time
from pinoise.cli.console import listening

class Dropping:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

with listening():
    try:
        Dropping()
        time.sleep(20)
    except KeyboardInterrupt:
        print("heard")
"""


def test_an_interrupt_that_a_destructor_drops_is_heard_all_the_same() -> None:
    process = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, timeout=60, check=True)
    assert process.stdout == "heard\n"
    assert not process.stderr
