"""Hostile surroundings: variables of clusters, locales, missing folders, closed streams, a full disk."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.hostile import forks
from tests.hostile.case import Case, Check, Expect, Generator, Wrong
from tests.hostile.oracles import same_array, same_weights
from tests.hostile.reference import TINY

TRAIN = ("train", "--data", "people.csv", "--label", "group", "--out", "mine", "--epochs", "2", *TINY)
EMBED = ("embed", "people", "--data", "people.csv", "--out", "out.npy")
SLURM = {
    "SLURM_NTASKS": "4",
    "SLURM_JOB_ID": "7",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_JOB_NAME": "train",
    "SLURM_NTASKS_PER_NODE": "4",
    "SLURM_NODELIST": "node1",
}
VARIABLES: tuple[tuple[Mapping[str, str | None], Expect], ...] = (
    ({"LOCAL_RANK": "1"}, "either"),
    ({"LOCAL_RANK": "x"}, "either"),
    ({"LOCAL_RANK": ""}, "either"),
    ({"LOCAL_RANK": "-1"}, "either"),
    ({"LOCAL_RANK": "9" * 5000}, "either"),
    ({"RANK": "1"}, "either"),
    ({"WORLD_SIZE": "4"}, "either"),
    ({"WORLD_SIZE": "x", "RANK": "y"}, "either"),
    ({"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "x"}, "right"),
    (SLURM, "right"),
    ({**SLURM, "SLURM_JOB_NAME": "bash"}, "right"),
    ({**SLURM, "SLURM_NTASKS": "x"}, "either"),
    ({"PINOISE_CACHE": "people.csv"}, "either"),
    ({"PINOISE_CACHE": "/proc/nowhere"}, "either"),
    ({"PINOISE_CACHE": ""}, "right"),
    ({"PINOISE_CACHE": "~nosuchuser/x"}, "either"),
    ({"PINOISE_CACHE": "x" * 5000}, "either"),
    ({"PINOISE_DATA": "/nowhere"}, "right"),
    ({"PINOISE_DATA": "people.csv"}, "right"),
    ({"PINOISE_DATA": "~nosuchuser/x"}, "either"),
    ({"TMPDIR": "/nowhere"}, "right"),
    ({"HOME": None}, "right"),
    ({"HOME": "/nowhere"}, "right"),
    ({"COLUMNS": "-5", "LINES": "x"}, "right"),
    ({"COLUMNS": "0"}, "right"),
    ({"TERM": "\x1b[2J"}, "right"),
    ({"CUDA_VISIBLE_DEVICES": "99,x"}, "right"),
    ({"OMP_NUM_THREADS": "x"}, "right"),
    ({"MPLBACKEND": "nosuch"}, "right"),
    ({"MPLCONFIGDIR": "/nowhere"}, "right"),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "right"),
    ({"PL_GLOBAL_SEED": "x"}, "right"),
    ({"LANG": "xx_YY.ZZ"}, "right"),
)
PROCESSES: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("the locale C without UTF-8", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, EMBED),
    ("ASCII output", {"PYTHONIOENCODING": "ascii"}, TRAIN),
    ("warnings as errors", {"PYTHONWARNINGS": "error"}, TRAIN),
    ("assertions left out", {"PYTHONOPTIMIZE": "2"}, TRAIN),
    ("an unknown locale", {"LC_ALL": "xx_YY.UTF-8"}, EMBED),
    ("a stray rank", {"LOCAL_RANK": "1"}, ("embed", "nowhere", *EMBED[2:])),
    ("a rank that is no number", {"LOCAL_RANK": "x"}, ("embed", "nowhere", *EMBED[2:])),
    ("tasks of SLURM", SLURM, TRAIN),
)


def make(reference: Path, rng: Generator) -> None:
    """Copy the sound table and the sound run."""
    shutil.copy(reference / "people.csv", "people.csv")
    shutil.copytree(reference / "people", "people")
    shutil.copy(reference / "people.embedding.npy", "wanted.npy")


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return variables with training, embedding and evaluation, and the rest once each, in turn."""
    rest = [*_processes(seed), *_limits(seed)]
    made: list[Case] = []
    variables = [(variable, turn) for turn in (0, 1) for variable in VARIABLES]
    for number in range(size):
        if (number % 6 == 1 or number > 40) and rest:  # real processes are slow: few of them come early
            made.append(_renumbered(rest.pop(0), number))
        else:
            (variable, expect), turn = variables[number % len(variables)]
            made.append(_with(number, variable, expect, train=(number + turn) % 2 == 0, seed=seed))
    return tuple(made)


def _renumbered(case: Case, number: int) -> Case:
    from dataclasses import replace

    return replace(case, number=number)


def _with(number: int, variables: Mapping[str, str | None], expect: Expect, *, train: bool, seed: int) -> Case:
    call, writes = (TRAIN, ("mine", "mine/*")) if train else (EMBED, ("out.npy",))
    right: Check = same_weights("mine", "people") if train else same_array("out.npy", "people.embedding.npy")
    label = ", ".join(f"{name}={str(value)[:20]}" for name, value in variables.items())
    return Case(
        "environments", number, f"{call[0]}: {label}", seed, call, make, expect, right, writes, environment=variables
    )


def _processes(seed: int) -> list[Case]:
    made = []
    for label, variables, call in PROCESSES:

        def run(variables: dict[str, str] = variables, call: tuple[str, ...] = call) -> None:
            check(start(*call, variables=variables), call)

        made.append(Case("environments", 0, f"a process: {label}", seed, run, make, "right", writes=("*",), limit=90))
    return made


def _limits(seed: int) -> list[Case]:
    calls = {
        "a deleted current folder": deleted_folder,
        "a closed output": lambda: closed("stdout"),
        "closed errors": lambda: closed("stderr"),
        "closed input": lambda: closed("stdin"),
        "output to a full disk": full,
        "a reader that goes away": broken_pipe,
        **{
            f"files of at most {size} bytes: {call[0]}": _small(size, call)
            for size in (0, 300, 900)
            for call in (TRAIN, EMBED)
        },
        **{f"files of at most {size} bytes: report": _small(size, REPORT) for size in (0, 5000)},
    }
    return [
        Case("environments", 0, label, seed, call, make, "right", writes=("*",), limit=90)
        for label, call in calls.items()
    ]


REPORT = ("report", "people", "--out", "page")


def start(
    *arguments: str, variables: Mapping[str, str] | None = None, script: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run a real process of the command."""
    command = [sys.executable, "-m", "pinoise", *arguments]
    if script:
        command = ["sh", "-c", script, "sh", *command]
    return subprocess.run(
        command, env={**os.environ, **(variables or {})}, capture_output=True, timeout=80, check=False
    )


def check(done: subprocess.CompletedProcess[bytes], call: tuple[str, ...]) -> None:
    """Refuse tracebacks, and errors without one sentence, and wrong results."""
    errors = done.stderr.decode(errors="replace")
    if "Traceback" in errors:
        raise Wrong(f"a traceback: {errors.strip().splitlines()[-1][:200]}")
    if done.returncode == 2 and errors.count("pinoise: ") != 1:
        raise Wrong(f"exit code 2 without one sentence: {errors[-200:]!r}")
    if done.returncode not in (0, 2):
        raise Wrong(f"exit code {done.returncode}: {errors[-200:]!r}")
    if done.returncode == 0 and call[0] == "embed":
        try:
            wrong = same_array("out.npy", "wanted.npy")(Path())
        except (OSError, ValueError) as error:
            wrong = f"the embedding cannot be read: {error}"
        if wrong:
            raise Wrong(wrong)


def deleted_folder() -> None:
    """Start in a folder that is gone."""
    run = Path("people").resolve()
    data = Path("people.csv").resolve()
    out = Path("out.npy").resolve()
    script = 'mkdir gone && cd gone && rmdir ../gone && "$@"'
    check(start("embed", str(run), "--data", str(data), "--out", str(out), script=script), ("embed",))
    check(start(*EMBED, script=script.replace("gone", "lost")), ("none",))


def closed(stream: str) -> None:
    """Start without one of the three streams."""
    mark = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}[stream]
    check(start(*EMBED, script=f'"$@" {mark}'), EMBED)


def full() -> None:
    """Print to a disk that is full: the run is there, and its end may not be claimed."""
    done = start("datasets", script='"$@" >/dev/full')
    errors = done.stderr.decode(errors="replace")
    if "Traceback" in errors or done.returncode == 0:
        raise Wrong(f"exit code {done.returncode}: {errors[-200:]!r}")


def broken_pipe() -> None:
    """Print to a reader that stops after a line."""
    done = start("datasets", script='"$@" | head -n 1')
    if "Traceback" in (errors := done.stderr.decode(errors="replace")):
        raise Wrong(errors[-200:])


def _small(size: int, call: tuple[str, ...]) -> Callable[[], None]:
    """Return a call under a limit on the size of files, as on a disk that fills up."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    def run() -> None:
        code, printed = forks.start(*call, before=limit).wait()
        check(subprocess.CompletedProcess(call, code, b"", printed.encode()), call)

    return run
