"""A disk that is full or read-only: one sentence, what was there is kept, nothing half written stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.problems import contents, files_of_at_most

from pinoise import PiNDA
from pinoise.files import WriteError, write_text

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # toys learn little
pytest.importorskip("resource", reason="only POSIX limits the size of files")

Command = Callable[..., Any]
COMPARE = ["compare", "--data", "wine", "--methods", "fixed", "--seeds", "1", "--epochs", "1", "--cache", "cells"]

VERBS: dict[str, list[str]] = {
    **{f"embed {end}": ["embed", "r", "--data", "d.csv", "--out", f"z.{end}"] for end in ("npy", "npz", "csv")},
    "embed parquet": ["embed", "r", "--data", "d.csv", "--out", "z.parquet", "--force"],
    "report": ["report", "r"],
    "report elsewhere": ["report", "r", "--out", "page", "--force"],
    "compare": COMPARE,
    "reproduce": ["reproduce", "T1", "--html", "page/t1.html", "--out", "page", "--force"],
}


@pytest.fixture(autouse=True)
def _older_files(here: Path) -> None:
    """Older files where the verbs write."""
    for name in ("z.parquet", "r/report.html", "page/report.html", "page/t1.html", "page/T1.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("old")


@pytest.mark.parametrize("size", [0, 50, 4000])
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_one_sentence_and_older_files_stay(pinoise: Command, here: Path, verb: str, size: int) -> None:
    before = contents(here)
    with files_of_at_most(size):
        done = pinoise(*VERBS[verb])
    if verb == "compare" and size == 4000:
        assert done.code == 0  # its files are small
        return
    errors = [line for line in done.err.splitlines() if line.startswith("pinoise: ")]
    assert (done.code, len(errors)) == (2, 1), done.err
    assert "(File too large): " in errors[0]
    assert "Traceback" not in done.err
    assert contents(here) == {**contents(here), **before}
    assert not [path for path in contents(here) if ".part" in path]
    if verb.startswith("embed"):
        assert contents(here) == before


@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_scores_are_printed_though_they_cannot_be_stored(pinoise: Command, here: Path, json_: list[str]) -> None:
    Path("r/evaluation.json").write_text("old")
    with files_of_at_most(0):
        done = pinoise("evaluate", "r", *json_)
    assert done.code == 0, done.err
    assert "note: the scores are not stored: r/evaluation.json cannot be written (File too large): " in done.err
    assert ("learned" in json.loads(done.out)["scores"]) if json_ else ("with 10 labels per class" in done.out)
    assert Path("r/evaluation.json").read_text() == "old"


def test_a_model_that_has_no_room_on_the_disk_leaves_the_one_before(here: Path) -> None:
    model, before = PiNDA.load("model"), contents(here)
    with (
        files_of_at_most(500),
        pytest.raises(WriteError, match=r"cannot be written \(File too large\)"),
    ):
        model.save("model")
    assert contents(here) == before


def test_the_error_is_both_a_mistake_to_tell_and_an_error_of_the_system(here: Path) -> None:
    with files_of_at_most(0), pytest.raises(OSError, match="cannot be written") as found:
        write_text(Path("a.txt"), "content")
    assert found.value.strerror == "File too large"
    assert isinstance(found.value, ValueError)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_printing_to_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pinoise", "datasets"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == (
        "pinoise: the output cannot be written (No space left on device): free some space or send it elsewhere.\n"
    )
    assert done.returncode == 2


# Run inside a mount namespace of its own: a disk of one page in ./small, and a read-only run in ./r.
MOUNTED = """
mount -t tmpfs -o size=4k none small && mount --bind r r && mount -o remount,ro,bind r || exit 99
exec "$@"
"""

INSIDE = """
import sys
from pathlib import Path
from pinoise.cli import main

for line in sys.stdin.read().splitlines():
    sys.argv = ["pinoise", *line.split()]
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    print(">>>", line, "=", code, sorted(path.name for path in Path("small").rglob("*")), flush=True)
"""


def test_real_disks_that_are_full_or_read_only(here: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this system does not let a test mount a disk")
    Path("small").mkdir()
    lines = [f"embed r --data d.csv --out small/z.{end}" for end in ("npy", "npz", "csv", "parquet")]
    lines += ["report r --out small", "report r", "evaluate r"]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", sys.executable, "-c", INSIDE],
        input="\n".join(lines),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 99:
        pytest.skip(f"this system does not let a test mount a disk: {done.stderr}")
    assert done.returncode == 0, done.stderr
    codes = [line for line in done.stdout.splitlines() if line.startswith(">>>")]
    assert codes == [
        *(f">>> {line} = 2 []" for line in lines[:-1]),
        f">>> {lines[-1]} = 0 []",
    ]
    said = done.stderr.splitlines()
    assert sum("(No space left on device): make room" in line for line in said) == 5, said
    assert "pinoise: a report cannot be written to r: r is not writable; choose another place." in said, said
    assert any("note: the scores are not stored" in line and "(Read-only file system)" in line for line in said), said
    assert "with 10 labels per class" in done.stdout
    assert "Traceback" not in done.stderr
