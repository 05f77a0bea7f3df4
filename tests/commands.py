"""The command as tests run it: in this process, in a new one, or watched while it works."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from pinoise.cli import main

LIMIT = 240.0  # seconds after which a process counts as hanging, on a busy machine too
PROGRESS = ("note: ", "epoch ", "resuming after ")


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        """The lines of its errors that are neither notes nor progress."""
        return [line for line in self.err.splitlines() if not line.startswith(PROGRESS)]

    @property
    def sentence(self) -> str:
        """What a mistake was answered with, checked to be one line and no traceback."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert len(self.said) == 1, self.err
        assert self.said[0].startswith("pinoise: "), self.err
        assert self.out == ""
        return self.said[0].removeprefix("pinoise: ")


def here(*arguments: object) -> int:
    """Run the command in this process and return its exit code; the caller captures what it prints."""
    before = sys.argv
    sys.argv = ["pinoise", *map(str, arguments)]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = before
    return 0


def start(
    *arguments: object,
    where: Path | None = None,
    environ: Mapping[str, str] | None = None,
    python: tuple[str, ...] = ("-m", "pinoise"),
) -> subprocess.Popen[str]:
    """Start the command in a process of its own, or other code by the arguments of Python itself."""
    return subprocess.Popen(
        [sys.executable, *python, *map(str, arguments)],
        cwd=where,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Result:
    """Wait for the end of a process. One that hangs is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        raise AssertionError(f"{process.args!r} had not ended after {LIMIT:.0f} s: {err[-500:]}") from None
    return Result(process.returncode, out, err)


def until(process: subprocess.Popen[str], happened: Path, *, lines: int = 0) -> None:
    """Wait until a file is there, with more than so many lines, while the process runs."""
    while process.poll() is None and not (
        happened.exists() and (not lines or len(happened.read_text().splitlines()) > lines)
    ):
        time.sleep(0.005)


def fresh_streams() -> None:
    """Give a fork new streams for what its files 1 and 2 are now; the old ones may hold text of the parent."""
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )


def leave(code: int) -> NoReturn:
    """End a fork at once, without the clean-up that belongs to its parent."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
