"""A process that has imported the libraries and forks for every command, so that a kill costs no start of Python.

``python -m tests.faults.warm`` reads requests from standard input, one JSON object per line: to start the command with
arguments in a folder, or to wait for the end of a process. ``Warm`` is its other end. A fork is a process of its own
with its own files, locks and threads, and dies of a signal as any other. One that trains with others starts those anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

_IMPORTED = (
    *("pinoise.cli.app", "pinoise.training.run", "pinoise.model", "pinoise.training.fabric", "pinoise.report"),
    *("pinoise.model", "pinoise.experiments.evaluated", "pinoise.export", "pinoise.evaluation"),
    *(
        "torch.utils.tensorboard.writer",
        "sklearn.linear_model",
        "pyarrow.csv",
        "pyarrow.parquet",
        "kornia.augmentation",
    ),
)


class Warm:
    """A server of forks, for one thread."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.warm"],
            env={**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> int:
        """Send a request and return the number that answers it."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(request), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the server."""
        self._server.communicate()


class Fork:
    """A process of the command, with those methods of ``subprocess.Popen`` that the suite uses."""

    def __init__(self, warm: Warm, arguments: tuple[str, ...], *, where: Path, environ: dict[str, str]) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self._warm, self._folder = warm, Path(tempfile.mkdtemp())
        for stream in ("1", "2"):
            (self._folder / stream).touch()  # a process may be killed before it opens them
        self.pid = warm.ask(arguments=arguments, where=str(where), environ=environ, printed=str(self._folder))
        self._end = os.pidfd_open(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended."""
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self._warm.ask(wait=self.pid)
            os.close(self._end)
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, or None as long as the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(timeout=0)
        return None

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end, and return what was printed, once."""
        self.wait(timeout)
        out, err = ((self._folder / name).read_text() for name in ("1", "2"))
        shutil.rmtree(self._folder)
        return out, err

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known to have ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def _child(arguments: list[str], where: str, environ: dict[str, str], printed: str) -> NoReturn:
    import torch
    from tests.commands import fresh_streams, here, leave

    code = 1
    try:
        torch.set_num_threads(1)  # its pool of threads is not forked
        for stream in (1, 2):
            os.dup2(os.open(f"{printed}/{stream}", os.O_WRONLY | os.O_CREAT), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        fresh_streams()
        os.environ.update(environ)
        os.chdir(where)
        code = here(*arguments)
    finally:
        leave(code)


def main() -> None:
    """Serve until standard input ends."""
    import importlib

    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        elif (answer := os.fork()) == 0:
            _child(**request)
        print(answer, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:  # a command that starts others of its group does so as it was started itself
        from pinoise.cli import main as command

        command()
    else:
        main()
