"""On a real Ray cluster of two workers: every row once, and the same weights, though a worker is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml
from safetensors.torch import load_file

from pinoise.engines.embedding import plan_work
from pinoise.engines.ray_cluster import _kept_handlers, cause, connected, mapped_on_ray
from pinoise.engines.ray_training import Job, _worker, train_on_ray
from pinoise.errors import UserError
from pinoise.model import Model
from pinoise.training.callbacks import Interrupted
from pinoise.training.checkpoint import read_checkpoint
from pinoise.training.config import merge, parse_settings
from pinoise.training.processes import LostProcessError

from .conftest import FILES, ROWS

cloudpickle = pytest.importorskip("ray.cloudpickle", reason="needs Ray: pip install 'pinoise[ray]'")

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    with connected(workers=2):
        yield


def workers(title: str) -> list[int]:
    """Return the processes of this test's cluster that Ray calls by a title."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"{os.getpid()}" in _ancestors(int(folder.name))
            if ours and (folder / "cmdline").read_bytes().startswith(f"ray::{title}".encode()):
                found.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _ancestors(process: int) -> set[str]:
    found: set[str] = set()
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        found.add(str(process))
    return found


def kill_one(title: str, when: Callable[[], bool]) -> threading.Thread:
    """Kill a worker in the middle of its work, once something is the case."""

    def kill() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if when() and (found := workers(title)):  # between two parts there is none
                os.kill(found[0], signal.SIGKILL)
                return
            time.sleep(0.002)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_every_row_is_there_once_though_a_worker_is_killed_in_the_middle(
    run: Model, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    work = plan_work(run, str(table), str(out), keep=["id"])
    left: list[int] = []

    def begun() -> bool:
        parts = len(list(out.glob("part-*")))
        left[:] = [FILES - parts]
        return parts >= 3

    killer = kill_one("_embed_part", begun)
    written: list[int] = []
    work.write_missing(processes=2, map_=mapped_on_ray, done=written.append)
    killer.join()
    assert left[0] > 0
    assert sorted(written) == list(range(FILES))
    found = ds.dataset(out).to_table()
    assert found.column("id").to_pylist() == list(range(FILES * ROWS))
    again = plan_work(run, str(table), str(out), keep=["id"])
    assert again.missing == ()


def test_training_on_ray_learns_what_two_processes_learn_though_one_is_killed(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    wanted = merge(settings, {"training": {"epochs": 40, "devices": 2}})
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(wanted))
    command = [sys.executable, "-m", "pinoise", "train", "--config", "config.yaml", "--out", "plain"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    path, said = tmp_path / "ray", list[str]()
    killer = kill_one("RayTrainWorker", (path / "checkpoints" / "last.ckpt").exists)
    job = Job(path, parse_settings(wanted), again="pinoise train --resume ray")
    outcome = train_on_ray(job, max_restarts=1, should_stop=lambda: False, say=said.append)
    killer.join()
    assert any(sentence.startswith("resuming after step ") for sentence in said)
    assert [record.epoch for record in outcome.history] == list(range(1, 41))
    one, other = (load_file(tmp_path / name / "encoder.safetensors") for name in ("plain", "ray"))
    assert all((one[name] == other[name]).all() for name in one)


def test_training_on_ray_stops_on_request_with_all_saved(settings: dict[str, Any], tmp_path: Path) -> None:
    job = Job(tmp_path / "run", parse_settings(merge(settings, {"training": {"epochs": 1000}})), "")
    last = job.path / "checkpoints" / "last.ckpt"
    with pytest.raises(Interrupted) as stopped:
        train_on_ray(job, should_stop=last.exists, say=lambda _: None)
    assert read_checkpoint(last).step == stopped.value.step


def test_sigterm_saves_and_ends_in_one_sentence_without_a_word_of_ray(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(merge(settings, {"training": {"epochs": 100_000}})))
    process = subprocess.Popen(
        [sys.executable, "-m", "pinoise", "train", "--config", "config.yaml", "--out", "run", "--engine", "ray"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    last = tmp_path / "run/checkpoints/last.ckpt"
    while process.poll() is None and not last.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if not line.startswith(("note: ", "epoch "))]
    step = read_checkpoint(last).step
    go_on = "go on with: pinoise train --resume run --engine ray (or use it as it stands)"
    assert said == [f"stopped after step {step}, all saved; {go_on}"]
    assert (process.returncode, out) == (130, "")


def test_a_death_on_ray_is_one_sentence_with_the_command_that_goes_on(settings: dict[str, Any], tmp_path: Path) -> None:
    endless = merge(settings, {"training": {"epochs": 100_000, "devices": 2}})
    job = Job(tmp_path / "run", parse_settings(endless), "pinoise train --resume run")
    killer = kill_one("RayTrainWorker", (job.path / "checkpoints" / "last.ckpt").exists)
    with pytest.raises(UserError, match="go on from the last checkpoint with: pinoise train --resume run"):
        train_on_ray(job, should_stop=lambda: False, say=lambda _: None)
    killer.join()


def test_what_ray_prints_leaves_standard_output_to_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    with connected():
        print("a worker died")
    assert capsys.readouterr() == ("", "a worker died\n")


def test_a_request_to_stop_that_comes_while_ray_starts_is_one() -> None:
    before = signal.getsignal(signal.SIGTERM)

    @_kept_handlers()
    def start() -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # as ray.init does
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        start()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_worker_needs_no_module_of_the_user_to_hear_of_its_work(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far_away.py").write_text("from pinoise.training.objectives import Paper\nclass Mine(Paper): pass\n")
    with monkeypatch.context() as here:
        here.syspath_prepend(tmp_path)
        job = Job(tmp_path / "run", parse_settings(merge(settings, {"objective": "far_away:Mine"})), "")
        sent = cloudpickle.dumps(_worker(job, None))
        here.delitem(sys.modules, "far_away")
    sys.modules.pop("far_away", None)
    assert callable(cloudpickle.loads(sent))


def test_more_processes_than_cores_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    job = Job(tmp_path / "run", parse_settings(merge(settings, {"training": {"devices": 99}})), "")
    with pytest.raises(UserError, match="99 processes were asked for, but the cluster has 2"):
        train_on_ray(job, should_stop=bool, say=lambda _: None)


def test_the_mistake_of_a_worker_is_told_before_the_loss_that_others_saw() -> None:
    from ray.train import WorkerGroupError
    from ray.train.v2._internal.exceptions import UserExceptionWithTraceback as Wrapped

    lost, mistake = LostProcessError("rank 1 ended"), UserError("the disk is full")
    failures = {0: Wrapped(lost, "a traceback"), 1: Wrapped(mistake, "a traceback")}
    assert cause(WorkerGroupError("two workers failed", failures)) is mistake
    assert cause(WorkerGroupError("one worker failed", {0: failures[0]})) is lost
    assert cause(WorkerGroupError("one was killed", {1: RuntimeError("the actor died")})) is None
