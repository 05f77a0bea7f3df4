"""A disk that is full or read-only: one sentence, what was there is kept, nothing half written stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise import PiNDA
from pinoise.cli import main
from pinoise.files import WriteError, write_text

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # toys learn little
resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")

Command = Callable[..., Any]
TINY = ["--set", "encoder.hidden=8", "--set", "encoder.out_features=4", "--epochs", "1", "--device", "cpu"]
COMPARE = ["compare", "--data", "wine", "--methods", "fixed", "--seeds", "1", "--epochs", "1", "--cache", "cells"]

VERBS: dict[str, list[str]] = {
    **{f"embed {end}": ["embed", "run", "--data", "wine", "--out", f"z.{end}"] for end in ("npy", "npz", "csv")},
    "embed parquet": ["embed", "run", "--data", "wine", "--out", "z.parquet", "--force"],
    "report": ["report", "run"],
    "report elsewhere": ["report", "run", "--out", "page", "--force"],
    "compare": COMPARE,
    "reproduce": ["reproduce", "T1", "--html", "page/t1.html", "--out", "page", "--force"],
    "train": ["train", "--data", "wine", "--out", "new", *TINY],
    "resume": ["train", "--resume", "run", "--epochs", "2"],
}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Refuse to make files longer, as a full disk does; the system says that the file is too large."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "run"
    before, sys.argv = sys.argv, ["pinoise", "train", "--data", "wine", "--out", str(path), *TINY]
    try:
        main()
        sys.argv = ["pinoise", "report", str(path)]
        main()
    finally:
        sys.argv = before
    return path


@pytest.fixture
def here(_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a report, and older files where the verbs write."""
    shutil.copytree(_run, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    for name in ("z.parquet", "page/report.html", "page/t1.html", "page/T1.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("old")
    return tmp_path


def content(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", [0, 50, 4000])
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_one_sentence_and_older_files_stay(pinoise: Command, here: Path, verb: str, size: int) -> None:
    before = content(here)
    with files_of_at_most(size):
        done = pinoise(*VERBS[verb])
    if verb == "compare" and size == 4000:
        assert done.code == 0  # its files are small
        return
    errors = [line for line in done.err.splitlines() if line.startswith("pinoise: ")]
    assert (done.code, len(errors)) == (2, 1), done.err
    assert "(File too large): " in errors[0]
    assert "Traceback" not in done.err
    after = content(here)
    assert not [path for path in after if ".part" in path.name]
    grows = set()
    if verb == "resume":  # a resumed run is longer, and while it is unfinished its checkpoints hold the weights
        grows = {"metrics.csv", "config.yaml", "encoder.safetensors", "embedding.safetensors", "noise.safetensors"}
    assert {path: after[path] for path in before if path.name not in grows} == {
        path: old for path, old in before.items() if path.name not in grows
    }
    if verb.startswith(("embed", "report")):
        assert after == before


@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_scores_are_printed_though_they_cannot_be_stored(pinoise: Command, here: Path, json_: list[str]) -> None:
    Path("run/evaluation.json").write_text("old")
    with files_of_at_most(0):
        done = pinoise("evaluate", "run", *json_)
    assert done.code == 0, done.err
    assert "note: the scores are not stored: run/evaluation.json cannot be written (File too large): " in done.err
    assert ("learned" in json.loads(done.out)["scores"]) if json_ else ("with 10 labels per class" in done.out)
    assert Path("run/evaluation.json").read_text() == "old"


def test_an_estimator_that_cannot_be_saved_is_one_sentence(here: Path) -> None:
    model = PiNDA(4, hidden=8, epochs=1, random_state=0).fit(np.random.default_rng(0).normal(size=(40, 4)))
    with (
        files_of_at_most(100),
        pytest.raises(WriteError, match=r"^m\.safetensors cannot be written \(File too large\)"),
    ):
        model.save("m.safetensors")
    assert not list(here.glob("*m.*"))


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


# Run inside a mount namespace of its own: a disk of a few pages in ./small, and a read-only run in ./run.
MOUNTED = """
mount -t tmpfs -o size=8k none small && mount --bind run run && mount -o remount,ro,bind run || exit 99
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
    lines = [f"embed run --data wine --out small/z.{end}" for end in ("npy", "npz", "csv", "parquet")]
    lines += ["report run --out small", "report run", "evaluate run"]
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
    assert "pinoise: a report cannot be written to run: run is not writable; choose another place." in said, said
    assert any("note: the scores are not stored" in line and "(Read-only file system)" in line for line in said), said
    assert "with 10 labels per class" in done.stdout
    assert "Traceback" not in done.stderr
