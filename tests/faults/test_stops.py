"""SIGTERM from a scheduler, and a loss that is no number: the last good state goes on to the same result."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.commands import ended, start, until
from tests.faults.commands import run
from tests.faults.conftest import Wholes
from tests.faults.events import Events
from tests.faults.families import MLP, TRAININGS
from tests.faults.states import check_same, newest_step, state

from pinoise.training.checkpoint import LAST

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_training_that_is_asked_to_stop_leaves_a_state_that_goes_on(wholes: Wholes, number: signal.Signals) -> None:
    whole = wholes("array in a file")
    place = whole.home / number.name
    process = start("train", "--out", f"{number.name}/run", *TRAININGS["array in a file"].flags, where=whole.home)
    until(process, place / "run/metrics.csv", lines=3)
    process.send_signal(number)
    done = ended(process)
    assert done.code == 130, done.err
    assert f"all saved; go on with: pinoise train --resume {number.name}/run" in done.err
    assert newest_step(place / "run") > 0
    run("train", "--resume", f"{number.name}/run", where=whole.home)
    check_same(whole.state, place / "run")


@pytest.mark.parametrize("moment", ["importing", "training"])
def test_five_quick_interrupts_end_without_a_traceback(moment: str, tmp_path: Path) -> None:
    flags = ("--data", "digits", *MLP, "--epochs", "100000", "--set", "training.checkpoint_every=5")
    process = start("train", "--out", "run", *flags, where=tmp_path)
    if moment == "training":
        until(process, tmp_path / "run/checkpoints" / LAST)
    else:
        while "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
    for _ in range(5):
        process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.code == 130, done.err
    assert "stopped" in done.err
    assert "Traceback" not in done.err
    assert newest_step(tmp_path / "run") > 0 or moment == "importing"


def test_a_verb_that_is_asked_to_stop_says_so_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(400_000, 4))  # more than is written before the signal comes
    np.save(tmp_path / "x.npy", x)
    run("train", "--data", "x.npy", "--rows", "64", "--out", "run", *MLP, "--epochs", "1", where=tmp_path)
    with Events(tmp_path) as events:
        process = start("embed", "run", "--data", "x.npy", "--out", "z.csv", where=tmp_path)
        while not any("part" in name for name in events.read(seconds=1)):
            assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    done = ended(process)
    assert (done.code, done.err.splitlines()[-1]) == (130, "stopped")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["x.npy"]


# An objective that breaks after some steps, as one does on a rare sample, until somebody repairs it.
OBJECTIVE = """
import itertools

from pinoise.training.objectives import Paper

calls = itertools.count()

class Rare(Paper):
    def forward(self, look, further=()):
        loss = super().forward(look, further)
        return loss * float("nan") if {breaks} and next(calls) == 20 else loss
"""


def test_a_loss_that_is_no_number_keeps_the_last_checkpoint_from_which_a_repaired_job_goes_on(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    flags = ["--data", "digits", "--rows", "300", "--objective", "mine:Rare", *MLP, "--epochs", "8"]
    flags += ["--set", "training.checkpoint_every=3"]
    module.write_text(OBJECTIVE.format(breaks=True))
    sentence = ended(start("train", "--out", "run", *flags, where=tmp_path)).sentence
    assert sentence.startswith("the loss became nan or infinite by step ")
    assert 0 < newest_step(tmp_path / "run") <= 20

    module.write_text(OBJECTIVE.format(breaks=False))
    run("train", "--resume", "run", "--trust", where=tmp_path)
    run("train", "--out", "whole", *flags, where=tmp_path)
    check_same(state(tmp_path / "whole"), tmp_path / "run")
