"""A disk that is full, or becomes read-only under a running job: one sentence, and the last checkpoint goes on."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.families import TRAININGS
from tests.faults.kills import Whole
from tests.faults.states import check_same, newest_step

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")

# Run in a mount namespace of its own, whose disks end with it. $1 is the command and $2 its flags.
FULL = """
mount -t tmpfs -o size=500k none disk || exit 99  # room for two checkpoints and not for three
$1 train --out disk/run $2 2> first
echo $? > code
cp -r disk/run stopped
mount -o remount,size=5m disk
$1 train --resume disk/run 2> second
cp -r disk/run resumed
"""
READ_ONLY = """
folder=disk/run/checkpoints
$1 train --out disk/run $2 2> first & pid=$!
while [ ! -e $folder/previous.ckpt ]; do sleep 0.01; done
kill -STOP $pid
mount --bind $folder $folder && mount -o remount,ro,bind $folder || exit 99
kill -CONT $pid
wait $pid
echo $? > code
umount $folder
cp -r disk/run stopped
$1 train --resume disk/run 2> second
cp -r disk/run resumed
"""


def mounts_can_be_made() -> bool:
    found = shutil.which("unshare")
    return found is not None and subprocess.run([found, "-rm", "true"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("script", "reason"), [(FULL, "No space left on device"), (READ_ONLY, "Read-only file system")], ids=["full", "ro"]
)
def test_a_disk_that_goes_bad_under_a_job_is_one_sentence_and_the_job_goes_on_later(
    array: Whole, tmp_path: Path, script: str, reason: str
) -> None:
    if not mounts_can_be_made():
        pytest.skip("this system does not let a test mount a disk")
    (tmp_path / "disk").mkdir()
    command = shlex.join([sys.executable, "-m", "pinoise"])
    flags = shlex.join(TRAININGS["array in a file"].flags)
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", command, flags],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    if done.returncode == 99:
        pytest.skip(f"this system does not let a test mount a disk: {done.stderr}")
    assert (tmp_path / "code").read_text() == "2\n"
    said = [line for line in (tmp_path / "first").read_text().splitlines() if not line.startswith(("note", "epoch"))]
    assert len(said) == 1, said
    assert said[0].startswith("pinoise: ")
    assert f"({reason}): free some space and continue with --resume; earlier checkpoints are kept." in said[0]
    assert newest_step(tmp_path / "stopped") > 0
    assert "resuming after step" in (tmp_path / "second").read_text()
    check_same(array.state, tmp_path / "resumed", elsewhere=True)
