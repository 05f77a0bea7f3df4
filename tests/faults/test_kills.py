"""Ten kills at random instants of real processes; ``make faults`` has hundreds."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.faults.commands import children_of, ended, gone, run, start
from tests.faults.conftest import Wholes
from tests.faults.events import Events
from tests.faults.families import TRAININGS
from tests.faults.kills import Case, Whole, draw, kill_training, kill_verb
from tests.faults.states import check_same
from tests.faults.warm import Warm

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")

SEED = 0


@pytest.mark.parametrize(("family", "number", "kills"), [("array in a file", 0, 5), ("two processes", 0, 4)])
def test_a_killed_and_resumed_training_ends_as_if_nothing_had_happened(
    wholes: Wholes, family: str, number: int, kills: int
) -> None:
    whole = wholes(family)
    early = whole._replace(seconds=whole.seconds / 2, changes=whole.changes // kills // 2)  # so that every kill hits
    struck = kill_training(Case(family, number, SEED, early, most=kills, note=print))
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


def test_instants_are_drawn_from_the_work_that_is_left() -> None:
    whole = Whole(Path(), seconds=10.0, changes=100, state={}, embedding=b"")
    rng = np.random.default_rng(SEED)
    drawn = [draw(rng, whole, left=0.2) for _ in range(200)]
    assert 15 < max(instant.changes for instant in drawn) < 20
    assert 1.8 < max(instant.seconds for instant in drawn) < 2.0


def test_a_folder_that_is_gone_when_it_is_looked_into_does_not_end_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Path.iterdir

    def late(folder: Path) -> Iterator[Path]:
        if folder.name == "short-lived":
            folder.rmdir()
        return look(folder)

    monkeypatch.setattr(Path, "iterdir", late)
    with Events(tmp_path) as events:
        (tmp_path / "short-lived").mkdir()
        assert events.read(seconds=1) == ["short-lived"]


def test_a_fork_says_what_the_command_says_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(Warm()) as warm:
        done = ended(start("embed", "nowhere", "--data", "x.npy", "--out", "z.npy", where=tmp_path, warm=warm))
    assert "nowhere" in done.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_killed_verb_leaves_the_old_file_or_the_new_one_and_the_run_as_it_was(wholes: Wholes) -> None:
    whole = wholes("embed .parquet")
    early = whole._replace(seconds=whole.seconds / 2, changes=2)
    assert kill_verb(Case("embed .parquet", 1, SEED, early, most=1, note=print)).kills == 1


def test_a_training_killed_before_its_first_checkpoint_starts_again(wholes: Wholes) -> None:
    whole = wholes("array in a file")
    place = whole.home / "early"
    place.mkdir()
    process = start("train", "--out", "early/run", *TRAININGS["array in a file"].flags, where=whole.home)
    while not (place / "run/environment.json").exists():  # the folder is there, and no step is done
        time.sleep(0.001)
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
