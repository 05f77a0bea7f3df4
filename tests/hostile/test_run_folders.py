"""A run folder has one process at a time, keeps its settings, and survives a full disk and a kill at any moment."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from filelock import FileLock

from pinoise import PiNDA
from pinoise.errors import UserError
from pinoise.files import replacing, write_json
from pinoise.training import running
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.load import load_run
from pinoise.training.run import run_training
from pinoise.training.running import HOLDER, LOCK, Holder, hold, refuse_if_held

Command = Callable[..., Any]
TINY = [
    *("--data", "wine", "--batch-size", "32", "--device", "cpu", "--set", "training.information_draws=0"),
    *("--set", "encoder.hidden=8", "--set", "encoder.out_features=4"),
]


@pytest.fixture(scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    values = {
        "data": {"source": "wine"},
        "encoder": {"hidden": 8, "out_features": 4},
        "training": {"epochs": 3, "batch_size": 32, "device": "cpu", "checkpoint_every": 4, "information_draws": 0},
    }
    run_training(folder / "run", parse_settings(values), reporter=Quiet())
    return folder / "run"


@pytest.fixture
def run(_finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, this test's own copy, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(_finished, tmp_path / "run")).relative_to(tmp_path)


def train(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a real training."""
    return subprocess.Popen(
        [sys.executable, "-m", "pinoise", "train", *TINY, "--out", "run", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def live(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A training that goes on until the block ends, and is then killed."""
    process = train(folder, "--epochs", "1000000")
    try:
        while not (folder / "run/metrics.csv").exists() and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_live_run_is_refused_by_the_name_of_its_process_and_taken_over_once_it_is_killed(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with live(tmp_path) as process:
        for arguments in (["--resume", "run"], [*TINY, "--out", "run"]):
            sentence = pinoise("train", *arguments).sentence
            assert sentence.startswith(f"run is in use by process {process.pid} on {socket.gethostname()} since 2")
            assert "(pinoise train --data wine" in sentence
        assert process.poll() is None
    assert (tmp_path / "run" / HOLDER).exists()
    config = yaml.safe_load(Path("run/config.yaml").read_text())
    config["training"]["epochs"] = 1
    Path("run/config.yaml").write_text(yaml.safe_dump(config))
    for checkpoint in Path("run/checkpoints").iterdir():
        checkpoint.unlink()
    result = pinoise("train", "--resume", "run")
    assert result.code == 0
    assert f"note: run was left without a word by process {process.pid} " in result.err
    assert not Path("run", HOLDER).exists()


def test_of_two_processes_that_create_a_folder_one_trains(tmp_path: Path) -> None:
    both = [train(tmp_path, "--epochs", "60", "--seed", str(seed)) for seed in (1, 2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], errors
    loser = codes.index(2)
    winner = both[1 - loser].pid
    last = errors[loser].splitlines()[-1]
    assert last.startswith((f"pinoise: run is in use by process {winner}", "pinoise: run already holds a run"))
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["training"]["seed"] == 2 - loser
    assert (tmp_path / "run/metrics.csv").read_text().count("\n") == 61


def test_a_new_run_does_not_go_on_with_one_that_was_made_there_meanwhile(run: Path) -> None:
    before = files(run)
    other = parse_settings({"data": {"source": "wine"}, "training": {"seed": 7, "epochs": 1}})
    with pytest.raises(UserError, match=r"already holds a run: choose another --out"):
        run_training(run, other, reporter=Quiet(), fresh=True)
    assert files(run) == before


def test_the_lock_of_another_machine_is_not_taken_over_but_said(pinoise: Command, run: Path) -> None:
    elsewhere = Holder.this().model_copy(update={"host": "elsewhere", "pid": 7, "command": "pinoise\n\x1b[2Jtrain"})
    write_json(run / HOLDER, elsewhere.model_dump())
    before = files(run)
    sentence = pinoise("train", "--resume", run, "--epochs", "5").sentence
    assert "run was last used by process 7 on elsewhere since" in sentence
    assert f"cannot be checked from {socket.gethostname()}: if it has ended, delete run/run.lock.json." in sentence
    assert "\x1b" not in sentence
    assert files(run) == before
    Path(run, HOLDER).unlink()
    assert pinoise("train", "--resume", run).code == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": -1}', '{"pid": "1"}', "\x00"])
def test_a_damaged_note_of_a_lock_stops_nobody(run: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_PATIENCE", 0.05)
    (run / HOLDER).write_text(text)
    refuse_if_held(run)
    with hold(run), pytest.raises(UserError, match=f"in use by process {os.getpid()} on "), hold(run):
        pass
    refuse_if_held(run)


def test_a_file_system_without_locks_goes_by_the_note(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*arguments: object, **options: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(FileLock, "acquire", no_locks)
    notes: list[str] = []
    with hold(run, note=notes.append), pytest.raises(UserError, match=f"in use by process {os.getpid()} on "):
        refuse_if_held(run)
    assert "has no locks" in notes[0]
    monkeypatch.setattr(running, "_runs", lambda pid: False)
    with hold(run), hold(run):
        pass


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_a_lock_that_is_no_file_is_one_sentence_and_no_wait(run: Path, kind: str) -> None:
    for name in (LOCK, HOLDER):
        (run / name).unlink(missing_ok=True)
        if kind == "folder":
            (run / name).mkdir()
        elif kind == "link":
            (run / name).symlink_to(run.absolute() / "config.yaml")
        else:
            os.mkfifo(run / name)
    config = (run / "config.yaml").read_bytes()
    try:
        with hold(run):
            pass
    except UserError as error:
        assert str(error).count("\n") == 0  # noqa: PT017
    assert (run / "config.yaml").read_bytes() == config


def edit(run: Path, path: str, value: Any) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    section: Any = config
    *sections, key = path.split(".")
    for name in sections:
        section = section[name]
    section[key] = value
    (run / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("method.temperature", 0.2, "method.temperature is 0.2 in config.yaml and 0.5 in last.ckpt: restore"),
        ("training.seed", 9, "training.seed is 9 in config.yaml and 0 in last.ckpt"),
        ("training.epochs", 2, "--epochs 2 is fewer than run has trained for (3)"),
        ("training.learning_rate", 0.01, "training.learning_rate is 0.01 in config.yaml and 0.001 in last.ckpt"),
        ("training.batch_size", 16, "training.batch_size is 16 in config.yaml and 32 in last.ckpt"),
        ("encoder.hidden", 9, "encoder.hidden is 9 in config.yaml and 8 in last.ckpt"),
        ("data.scaling", "global", 'data.scaling is "global" in config.yaml and "auto" in last.ckpt'),
        ("noise.distribution", "uniform", 'noise.distribution is "uniform" in config.yaml and "gaussian" in'),
        ("views.augmentations", ["scarf"], "views.augmentations is ["),
        ("objective", "paper", 'objective.name is "paper" in config.yaml and "supported" in last.ckpt'),
        ("method.temprature", 0.2, "unknown setting 'method.temprature': did you mean 'method.temperature'?"),
        ("training", 7, "setting 'training' is 7: it must be a section"),
        ("format", "three", "format three"),
    ],
)
def test_a_setting_that_was_edited_is_refused_by_name(
    pinoise: Command, run: Path, path: str, value: Any, sentence: str
) -> None:
    edit(run, path, value)
    before = files(run)
    assert sentence in pinoise("train", "--resume", run).sentence
    assert {name: content for name, content in files(run).items() if LOCK not in name} == {
        name: content for name, content in before.items() if LOCK not in name
    }


def test_epochs_device_and_the_interval_of_checkpoints_may_change(pinoise: Command, run: Path) -> None:
    flags = ["--epochs", "4", "--device", "auto", "--set", "training.checkpoint_every=3"]
    result = pinoise("train", "--resume", run, *flags)
    assert result.code == 0, result.err
    training = yaml.safe_load((run / "config.yaml").read_text())["training"]
    assert (training["epochs"], training["device"], training["checkpoint_every"]) == (4, "auto", 3)
    edit(run, "training.checkpoint_every", 2)
    edit(run, "training.device", "cpu")
    assert pinoise("train", "--resume", run).code == 0


def test_a_damaged_checkpoint_never_takes_the_place_of_the_sound_one_before_it(pinoise: Command, run: Path) -> None:
    checkpoints = run / "checkpoints"
    last, sound = checkpoints / "last.ckpt", (checkpoints / "previous.ckpt").read_bytes()
    weights = (run / "encoder.safetensors").read_bytes()
    last.write_bytes(last.read_bytes()[:-500])
    result = pinoise("train", "--resume", run)
    assert "note: checkpoint last.ckpt is damaged" in result.err
    assert "so it was skipped: previous.ckpt is used." in result.err
    assert (checkpoints / "previous.ckpt").read_bytes() == sound
    assert (run / "encoder.safetensors").read_bytes() == weights


def test_what_a_kill_leaves_before_the_configuration_is_cleaned_up(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    with replacing(Path("run/config.yaml")) as temporary:
        temporary.touch()
        kept = temporary.name
    Path("run/config.yaml").rename(Path("run", kept))  # as after a kill before the file got its name
    Path("run", LOCK).touch()
    write_json(Path("run", HOLDER), Holder.this().model_dump())
    Path("run/mine.txt").touch()
    assert "run is not empty and not a run folder" in pinoise("train", *TINY, "--out", "run").sentence
    Path("run/mine.txt").unlink()
    result = pinoise("train", *TINY, "--epochs", "1", "--out", "run")
    assert result.code == 0, result.err
    assert not Path("run", kept).exists()


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """A disk that has room for no file larger than ``limit`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.filterwarnings("ignore::pinoise.training.load.UnfinishedRunWarning")
@pytest.mark.parametrize("limit", [0, 100, 300, 1000, 1700, 3000, 20_000])
def test_a_full_disk_is_one_sentence_and_what_was_learned_stays(pinoise: Command, run: Path, limit: int) -> None:
    before, weights = files(run), load_run(run).weights
    with full_disk(limit):
        result = pinoise("train", "--resume", run, "--epochs", "6")
    assert result.code == 2
    assert "Traceback" not in result.err
    assert "cannot be written" in result.err.splitlines()[-1]
    assert files(run)["run/data.json"] == before["run/data.json"]
    assert load_run(run).weights == weights  # in files, or in the checkpoint of a run that was about to go on
    assert not [name for name in files(run) if ".part" in name]
    assert pinoise("train", "--resume", run, "--epochs", "6").code == 0


@pytest.mark.parametrize("limit", [0, 100, 300, 1000, 1700, 3000])
def test_a_disk_that_is_full_from_the_start_leaves_no_folder_that_cannot_be_used(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with full_disk(limit):
        result = pinoise("train", *TINY, "--epochs", "2", "--out", "run")
    assert result.code == 2
    assert "Traceback" not in result.err
    assert "cannot be written" in result.err.splitlines()[-1]
    if Path("run/config.yaml").exists():
        assert pinoise("train", "--resume", "run").code == 0
    else:
        assert not Path("run").exists()


def test_a_model_that_has_no_room_on_the_disk_leaves_the_one_before(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    model = PiNDA(2, hidden=3, epochs=1, batch_size=15, device="cpu", random_state=0).fit(x)
    path = tmp_path / "model.safetensors"
    model.save(path)
    before = path.read_bytes()
    with full_disk(500), pytest.raises(UserError, match=r"model\.safetensors cannot be written \(File too large\)"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UserError, match=r"gone/model\.safetensors cannot be written \(No such file or directory\)"):
        model.save(tmp_path / "gone/model.safetensors")


def test_a_checkpoint_of_another_run_is_not_mixed_in(pinoise: Command, run: Path) -> None:
    other = ["--seed", "5", "--epochs", "2", "--out", "other"]
    assert pinoise("train", *TINY, *other).code == 0
    shutil.copy("other/checkpoints/last.ckpt", run / "checkpoints/last.ckpt")
    result = pinoise("train", "--resume", run)
    assert result.code == 0
    assert "last.ckpt is of another run (training.seed is 0 in config.yaml and 5 in it)" in result.err


def test_a_run_folder_says_who_holds_it_in_plain_json(run: Path) -> None:
    with hold(run):
        found = json.loads((run / HOLDER).read_text())
    assert found["pid"] == os.getpid()
    assert found["host"] == socket.gethostname()


def dying(function: Callable[..., Any], *, after: int) -> Callable[..., Any]:
    """Return a function that works so many times, and then ends the process as a kill does."""
    left = iter(range(after))
    return lambda *arguments: function(*arguments) if next(left, None) is not None else os._exit(9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of this process")
def test_a_kill_at_any_file_leaves_a_folder_that_can_be_used(
    pinoise: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: (run / name).read_bytes() for name in ("encoder.safetensors", "noise.safetensors")}
    arguments = [*TINY, "--epochs", "3", "--set", "training.checkpoint_every=4", "--out", "killed"]
    for moment in range(20):
        child = os.fork()
        if child == 0:
            monkeypatch.setattr(Path, "replace", dying(Path.replace, after=moment))
            pinoise("train", *arguments)
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        begun = Path("killed/config.yaml").exists()
        result = pinoise("train", *(["--resume", "killed"] if begun else arguments))
        assert result.code == 0, (moment, result.err)
        assert {name: Path("killed", name).read_bytes() for name in whole} == whole, moment
        assert not [name for name in files(Path("killed")) if ".part" in name or name.endswith(HOLDER)]
        shutil.rmtree("killed")
        if killed == 0:
            break
    assert killed == 0
    assert moment > 8


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_run_that_may_not_be_written_to_is_one_sentence(pinoise: Command, run: Path) -> None:
    run.chmod(0o500)
    try:
        assert "a run cannot be written to run" in pinoise("train", "--resume", run).sentence
    finally:
        run.chmod(0o700)
