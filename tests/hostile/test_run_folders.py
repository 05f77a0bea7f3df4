"""A run folder has one process at a time, keeps its settings, and survives a full disk and a kill at any moment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock
from tests.commands import ended, start, until
from tests.problems import TINY, contents, files_of_at_most

from pinoise.errors import UserError
from pinoise.files import LOCK, replacing
from pinoise.model import load_run
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training
from pinoise.training.running import hold, refuse_if_held

Command = Callable[..., Any]
TRAIN = ("train", "--data", "wine", *TINY)


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


@contextmanager
def live(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A training that goes on until the block ends, and is then killed."""
    process = start(*TRAIN, "--out", "run", "--epochs", "1000000", where=folder)
    until(process, folder / "run/metrics.csv")
    assert process.poll() is None, process.communicate()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_live_run_is_refused_and_taken_over_once_its_process_is_killed(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with live(tmp_path) as process:
        for arguments in (["train", "--resume", "run"], [*TRAIN, "--out", "run"]):
            assert pinoise(*arguments).sentence.startswith("run is in use by another process: wait until it ends")
        assert process.poll() is None
    config = yaml.safe_load(Path("run/config.yaml").read_text())
    config["training"]["epochs"] = 1
    Path("run/config.yaml").write_text(yaml.safe_dump(config))
    for checkpoint in Path("run/checkpoints").iterdir():
        checkpoint.unlink()
    result = pinoise("train", "--resume", "run")
    assert result.code == 0


def test_of_two_processes_that_create_a_folder_one_trains(tmp_path: Path) -> None:
    flags = ("--out", "run", "--epochs", "60", "--seed")
    both = [start(*TRAIN, *flags, seed, where=tmp_path) for seed in (1, 2)]
    results = [ended(process) for process in both]
    assert sorted(result.code for result in results) == [0, 2], results
    loser = [result.code for result in results].index(2)
    assert results[loser].sentence.startswith(("run is in use by another process", "run already holds a run"))
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["training"]["seed"] == 2 - loser
    assert (tmp_path / "run/metrics.csv").read_text().count("\n") == 61


def test_a_new_run_does_not_go_on_with_one_that_was_made_there_meanwhile(run: Path) -> None:
    before = contents(run)
    other = parse_settings({"data": {"source": "wine"}, "training": {"seed": 7, "epochs": 1}})
    with pytest.raises(UserError, match=r"already holds a run: choose another --out"):
        run_training(run, other, reporter=Quiet(), fresh=True)
    assert contents(run) == before


def test_a_file_system_without_locks_is_noted(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*arguments: object, **options: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(FileLock, "acquire", no_locks)
    notes: list[str] = []
    with hold(run, note=notes.append):
        refuse_if_held(run)
    assert "has no locks" in notes[0]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_a_lock_that_is_no_file_is_one_sentence_and_no_wait(run: Path, kind: str) -> None:
    (run / LOCK).unlink()
    if kind == "folder":
        (run / LOCK).mkdir()
    elif kind == "link":
        (run / LOCK).symlink_to(run.absolute() / "config.yaml")
    else:
        os.mkfifo(run / LOCK)
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
        ("method.temperature", 0.2, "method.temperature is 0.2 in config.yaml and 0.5 in it)"),
        ("training.seed", 9, "training.seed is 9 in config.yaml and 0 in it"),
        ("training.epochs", 2, "--epochs 2 is fewer than run has trained for"),
        ("training.learning_rate", 0.01, "training.learning_rate is 0.01 in config.yaml and 0.001 in it"),
        ("training.batch_size", 16, "training.batch_size is 16 in config.yaml and 32 in it"),
        ("encoder.hidden", 9, "encoder.hidden is 9 in config.yaml and 8 in it"),
        ("data.scaling", "global", 'data.scaling is "global" in config.yaml and "auto" in it'),
        ("noise.mean", "learned", 'noise.mean is "learned" in config.yaml and "zero" in it'),
        ("objective", "paper", 'objective.name is "paper" in config.yaml and "supported" in it'),
        ("method.temprature", 0.2, "unknown setting 'method.temprature': did you mean 'method.temperature'?"),
        ("training", 7, "setting 'training' is 7: it must be a section"),
        ("format", "three", "format three"),
    ],
)
def test_a_setting_that_was_edited_is_refused_by_name(
    pinoise: Command, run: Path, path: str, value: Any, sentence: str
) -> None:
    edit(run, path, value)
    before = contents(run)
    assert sentence in pinoise("train", "--resume", run).sentence
    assert {name: content for name, content in contents(run).items() if LOCK not in name} == {
        name: content for name, content in before.items() if LOCK not in name
    }


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
    Path("run/mine.txt").touch()
    assert "run is not empty and not a run folder" in pinoise(*TRAIN, "--out", "run").sentence
    Path("run/mine.txt").unlink()
    result = pinoise(*TRAIN, "--epochs", "1", "--out", "run")
    assert result.code == 0, result.err
    assert not Path("run", kept).exists()


@pytest.mark.filterwarnings("ignore::pinoise.model.UnfinishedRunWarning")
@pytest.mark.parametrize("limit", [0, 300, 1700, 20_000])
def test_a_full_disk_is_one_sentence_and_what_was_learned_stays(pinoise: Command, run: Path, limit: int) -> None:
    before, weights = contents(run), load_run(run).weights
    with files_of_at_most(limit):
        result = pinoise("train", "--resume", run, "--epochs", "6")
    assert result.code == 2
    assert "Traceback" not in result.err
    assert "cannot be written" in result.err.splitlines()[-1]
    assert contents(run)["run/data.json"] == before["run/data.json"]
    assert load_run(run).weights == weights  # in files, or in the checkpoint of a run that was about to go on
    assert not [name for name in contents(run) if ".part" in name]
    assert pinoise("train", "--resume", run, "--epochs", "6").code == 0


@pytest.mark.parametrize("limit", [0, 300, 1700])
def test_a_disk_that_is_full_from_the_start_leaves_no_folder_that_cannot_be_used(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with files_of_at_most(limit):
        result = pinoise(*TRAIN, "--epochs", "2", "--out", "run")
    assert result.code == 2
    assert "Traceback" not in result.err
    assert "cannot be written" in result.err.splitlines()[-1]
    if Path("run/config.yaml").exists():
        assert pinoise("train", "--resume", "run").code == 0
    else:
        assert not Path("run").exists()


def dying(function: Callable[..., Any], *, after: int) -> Callable[..., Any]:
    """Return a function that works so many times, and then ends the process as a kill does."""
    left = iter(range(after))
    return lambda *arguments: function(*arguments) if next(left, None) is not None else os._exit(9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a copy of this process")
def test_a_kill_at_any_file_leaves_a_folder_that_can_be_used(
    pinoise: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: (run / name).read_bytes() for name in ("encoder.safetensors", "noise.safetensors")}
    arguments = [*TRAIN, "--epochs", "3", "--set", "training.checkpoint_every=4", "--out", "killed"]
    for moment in range(20):
        child = os.fork()
        if child == 0:
            monkeypatch.setattr(Path, "replace", dying(Path.replace, after=moment))
            pinoise(*arguments)
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        begun = Path("killed/config.yaml").exists()
        result = pinoise(*(["train", "--resume", "killed"] if begun else arguments))
        assert result.code == 0, (moment, result.err)
        assert {name: Path("killed", name).read_bytes() for name in whole} == whole, moment
        assert not [name for name in contents(Path("killed")) if ".part" in name]
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
