"""Data that changes under a running job, or between a stop and a resume."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.commands import ended, start, until
from tests.faults.commands import run
from tests.faults.families import TRAININGS
from tests.faults.kills import Whole
from tests.faults.states import check_same, newest_step

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")

FLAGS = TRAININGS["array in a file"].flags


def test_data_that_changes_stops_the_job_and_its_resume_until_it_is_restored(array: Whole, tmp_path: Path) -> None:
    data, folder = tmp_path / "x.npy", tmp_path / "run"
    sound = data.read_bytes()
    process = start("train", "--out", "run", *FLAGS, where=tmp_path)
    until(process, folder / "checkpoints/previous.ckpt")
    with data.open("r+b") as file:  # in its place, as a program that appends or corrects does
        file.seek(len(sound) // 2)
        file.write(np.float32(-1).tobytes())  # no pixel is negative
    assert ended(process).sentence.startswith("x.npy has changed while it was used: restore it, ")
    assert newest_step(folder) > 0
    sentence = ended(start("train", "--resume", "run", where=tmp_path)).sentence
    assert "x.npy has changed since run began with 400 rows of 64: restore the data" in sentence

    data.write_bytes(sound)
    assert "resuming after step" in run("train", "--resume", "run", where=tmp_path).err
    check_same(array.state, folder, elsewhere=True)
