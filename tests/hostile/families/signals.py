"""Signals at random moments of training, after which the run goes on to the same weights as if nothing had been."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hostile.case import Case, Generator, Wrong, generator
from tests.hostile.forks import start
from tests.hostile.oracles import same_weights
from tests.hostile.reference import TINY

LENGTH = ("--data", "people.csv", "--label", "group", "--epochs", "60", *TINY, "--set", "training.checkpoint_every=3")
SIGNALS = ("KILL", "TERM", "INT", "HUP", "INT INT", "INT INT INT INT INT", "TERM TERM", "TERM KILL", "HUP TERM")


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return every signal at several moments; every fifth case is a process of its own from the first import on."""
    return tuple(_case(number, seed) for number in range(size))


def _case(number: int, seed: int) -> Case:
    sent = SIGNALS[number % len(SIGNALS)].split()
    whole = number % 5 == 4
    rng = generator("signals", number, seed)
    moment = float(rng.uniform(0, 5) if whole else rng.uniform(0, 1.5))

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")

    def call() -> None:
        disturb(sent, moment, whole=whole)

    where = "a new process" if whole else "training"
    return Case(
        "signals", number, f"SIG{' '.join(sent)} after {moment:.2f} s of {where}", seed, call, make, "right",
        writes=("mine", "mine/*", "whole", "whole/*"), limit=150,
    )  # fmt: skip


def disturb(sent: list[str], moment: float, *, whole: bool) -> None:
    """Train undisturbed and disturbed, resume, and compare the weights."""
    _quietly("train", *LENGTH, "--out", "whole")
    errors = _real(sent, moment) if whole else _forked(sent, moment)
    if "Traceback" in errors:
        raise Wrong(f"SIG{' '.join(sent)} gave a traceback: {errors.strip().splitlines()[-1][:200]}")
    if Path("mine/config.yaml").exists():
        _quietly("train", "--resume", "mine")
    else:
        _quietly("train", *LENGTH, "--out", "mine")
    if wrong := same_weights("mine", "whole")(Path()):
        raise Wrong(wrong)


def _quietly(*arguments: str) -> None:
    """Run the command in a fork, because training leaves threads behind."""
    code, printed = start(*arguments).wait()
    if code != 0:
        raise Wrong(f"{arguments[0]} {arguments[1]} ended with {code} after the signal: {printed[-300:]}")


def _send(pid: int, sent: list[str], moment: float) -> None:
    time.sleep(moment)
    for name in sent:
        try:
            os.kill(pid, getattr(signal, f"SIG{name}"))
        except ProcessLookupError:
            return
        time.sleep(0.01)


def _forked(sent: list[str], moment: float) -> str:
    fork = start("train", *LENGTH, "--out", "mine")
    _send(fork.pid, sent, moment)
    code, printed = fork.wait()
    _check_code(code, sent)
    return printed


def _real(sent: list[str], moment: float) -> str:
    arguments = [sys.executable, "-m", "pinoise", "train", *LENGTH, "--out", "mine"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _send(process.pid, sent, moment)
    _, errors = process.communicate()
    _check_code(process.returncode, sent)
    return errors.decode(errors="replace")


def _check_code(code: int, sent: list[str]) -> None:
    """Allow the end of training, a stop that was asked for, or the death by one of the signals."""
    if code not in (0, 130, *(-getattr(signal, f"SIG{name}") for name in sent)):
        raise Wrong(f"training ended with {code} after SIG{' '.join(sent)}")
