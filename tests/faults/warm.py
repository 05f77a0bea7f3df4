"""The command in forks of a process that has imported the libraries, so that a kill costs no start of Python.

A fork is a process of its own with its own files, locks and threads, and dies of a signal as any other. One that trains
with others starts those anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from multiprocessing import get_context
from pathlib import Path

from tests.commands import fresh_streams, here, leave

_SERVER = get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        *("pinoise.cli.app", "pinoise.training.run", "pinoise.model", "pinoise.report", "pinoise.evaluation"),
        *("pinoise.experiments.evaluated", "pinoise.export"),
        *("pinoise.training.launch", "sklearn.linear_model", "pyarrow.csv", "pyarrow.parquet", "kornia.augmentation"),
        "torch.utils.tensorboard.writer",
    ]
)


class Fork:
    """A process of the command, with those methods of ``subprocess.Popen`` that the suite uses."""

    def __init__(self, arguments: tuple[str, ...], *, where: Path, environ: dict[str, str]) -> None:
        self.args = arguments
        self._folder = Path(tempfile.mkdtemp())
        for stream in ("1", "2"):
            (self._folder / stream).touch()  # a process may be killed before it opens them
        self._process = _SERVER.Process(target=_run, args=(arguments, where, environ, self._folder))
        self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, or None as long as the process runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the same."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end, and return what was printed, once."""
        self.wait(timeout)
        out, err = ((self._folder / name).read_text() for name in ("1", "2"))
        shutil.rmtree(self._folder)
        return out, err

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()


def _run(arguments: tuple[str, ...], where: Path, environ: dict[str, str], printed: Path) -> None:
    import torch

    code = 1
    try:
        torch.set_num_threads(1)  # its pool of threads is not forked
        for stream in (1, 2):
            os.dup2(os.open(printed / str(stream), os.O_WRONLY | os.O_CREAT), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        fresh_streams()
        os.environ.update(environ)
        os.chdir(where)
        code = here(*arguments)
    finally:
        leave(code)
