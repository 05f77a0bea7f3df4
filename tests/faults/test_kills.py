"""Ten kills at random instants of real processes; ``make faults`` has hundreds."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.commands import ended, start, until
from tests.faults import commands
from tests.faults.commands import children_of, gone, run
from tests.faults.conftest import Wholes
from tests.faults.families import TRAININGS
from tests.faults.kills import Case, Whole, kill_training, kill_verb
from tests.faults.states import check_same

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")

SEED = 0


@pytest.mark.parametrize(("family", "number", "kills"), [("array in a file", 0, 5), ("two processes", 0, 2)])
def test_a_killed_and_resumed_training_ends_as_if_nothing_had_happened(
    wholes: Wholes, family: str, number: int, kills: int
) -> None:
    whole = wholes(family)
    early = whole._replace(seconds=whole.seconds / 2, changes=whole.changes // kills // 2)  # so that every kill hits
    struck = kill_training(Case(family, number, SEED, early, most=kills, at_a_change=1.0, note=print))
    assert struck.kills == kills, struck


def test_a_kill_came_while_writing_only_if_its_own_process_left_something(tmp_path: Path) -> None:
    starts = iter([True, False, True])  # whether the process writes a checkpoint, all of which have one name

    def begin() -> subprocess.Popen[str]:
        if next(starts):
            (tmp_path / "partial.ckpt").unlink(missing_ok=True)
            (tmp_path / "partial.ckpt").write_bytes(b"half")
        command, pipe = ["sh", "-c", "while :; do echo > beside; sleep 0.01; done"], subprocess.PIPE
        return subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True)

    case = Case("vectors", 0, SEED, Whole(tmp_path, seconds=0.2, changes=5, state={}, embedding=b""), most=3)
    struck = case.strike(begin, tmp_path, lambda: 1.0, devices=1)
    assert (struck.kills, struck.while_writing) == (3, 2)


def test_a_fork_says_what_the_command_says(tmp_path: Path) -> None:
    fork = commands.start("embed", "nowhere", "--data", "x.npy", "--out", "z.npy", where=tmp_path, warm=True)
    assert "nowhere" in commands.ended(fork).sentence


def test_a_killed_verb_leaves_the_old_file_or_the_new_one_and_the_run_as_it_was(wholes: Wholes) -> None:
    whole = wholes("embed .parquet")
    early = whole._replace(seconds=whole.seconds / 2, changes=2)
    assert kill_verb(Case("embed .parquet", 1, SEED, early, most=1, note=print)).kills == 1


def test_a_training_killed_before_its_first_checkpoint_starts_again(wholes: Wholes) -> None:
    whole = wholes("array in a file")
    place = whole.home / "early"
    place.mkdir()
    process = start("train", "--out", "early/run", *TRAININGS["array in a file"].flags, where=whole.home)
    until(process, place / "run/environment.json")  # the folder is there, and no step is done
    process.kill()
    assert ended(process).code == -signal.SIGKILL
    assert not (place / "run/checkpoints/last.ckpt").exists()
    run("train", "--resume", "early/run", where=whole.home)
    check_same(whole.state, place / "run")


def test_a_process_whose_parent_is_killed_before_they_meet_ends_too(tmp_path: Path) -> None:
    process = start("train", "--out", "run", *TRAININGS["two processes"].flags, where=tmp_path)
    while not (others := children_of(process.pid)):
        time.sleep(0.005)
    process.kill()
    gone(others, limit=60)
    assert ended(process).code == -signal.SIGKILL
    assert not (tmp_path / "run").exists()
