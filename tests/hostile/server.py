"""Warm processes that fork for every case, so that a case can crash, hang, fill memory or change its world alone."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

from tests.commands import fresh_streams, here, leave
from tests.hostile.case import Case, Outcome, Wrong
from tests.hostile.families import find_case
from tests.hostile.judge import judge, read_ended, snapshot

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 3 << 29  # bytes that a case may use beyond the warm process: 1.5 GiB
WAITING = 5  # times a case may take its limit of processor time, as a busy machine lets it wait
BROKEN = 97  # the exit code of a case that could not be made: a fault of the suite
CLEARED = ("PINOISE_DATA", "LOCAL_RANK", "RANK", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_JOB_ID")
_scratch = Path()  # of a warm process: a folder with the sound files in it


@contextlib.contextmanager
def servers(number: int) -> Iterator[ProcessPoolExecutor]:
    """Give warm processes, to which ``run_named`` is submitted."""
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as scratch:
        spawn = get_context("spawn")  # not a copy of this process, which may have threads
        with ProcessPoolExecutor(number, spawn, initializer=_warm_up, initargs=(scratch,)) as pool:
            yield pool


def _warm_up(scratch: str) -> None:
    """Import the libraries and make the sound files, once for all cases of this process."""
    global _scratch
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other end
    os.environ["OMP_NUM_THREADS"] = "1"  # more than one thread of OpenMP does not survive a fork
    import torch
    from tests.hostile.reference import prepare

    torch.set_num_threads(1)
    _scratch = Path(tempfile.mkdtemp(dir=scratch))
    (_scratch / "reference").mkdir()
    prepare(_scratch / "reference")


def run_named(name: str, seed: int, *, show: bool = False) -> Outcome:
    """Run the case of that name in this warm process."""
    return run_case(find_case(name, seed), _scratch / "reference", _scratch, show=show)


def run_case(case: Case, reference: Path, scratch: Path, *, show: bool = False) -> Outcome:
    """Run one case in a process of its own and judge it. Its files are removed."""
    home = Path(tempfile.mkdtemp(dir=scratch))
    folder = home / "case"
    folder.mkdir()
    try:
        pid = os.fork()
        if pid == 0:
            _child(case, reference, home, folder)
        code = _wait(pid, WAITING * case.limit)
        if code == BROKEN:
            raise RuntimeError(f"{case.name} could not be made:\n{(home / 'stderr').read_text()}")
        started = home / "before.json"
        before = json.loads(started.read_text()) if started.exists() else {}
        ended = read_ended(home, code)
        if show:
            error = (ended.raised or {}).get("traceback", "")
            print(f"exit code {ended.code}\n{ended.out}{ended.err}{error}", file=sys.stderr)
        return judge(case, ended, before, folder, reference)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _child(case: Case, reference: Path, home: Path, folder: Path) -> NoReturn:
    """Make the case's files, close this process in, and make its call."""
    import torch

    code = BROKEN
    try:
        os.setsid()
        # A fork's first call of torch makes its pool of threads again. Two threads that both come first break it.
        torch.set_num_threads(torch.get_num_threads())
        faulthandler.disable()  # a death by signal is judged by its number
        _redirect(home)
        os.chdir(folder)
        _surround(home)
        case.make(reference, case.rng)
        (home / "before.json").write_text(json.dumps(snapshot(folder)))
        _limit(case)
        code = _call(case, home)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _call(case: Case, home: Path) -> int:
    if not callable(case.call):
        try:
            return here(*case.call)
        except BaseException:
            traceback.print_exc()
            return 1
    try:
        case.call()
    except BaseException as error:
        left = {
            "wrong": isinstance(error, Wrong),
            "types": [kind.__name__ for kind in type(error).__mro__],
            "message": str(error),
            "traceback": traceback.format_exc(),
        }
        (home / "raised.json").write_text(json.dumps(left))
    return 0


def _surround(home: Path) -> None:
    for name in CLEARED:
        os.environ.pop(name, None)
    for name in ("cache", "home", "tmp"):
        (home / name).mkdir()
    os.environ.update(PINOISE_CACHE=str(home / "cache"), HOME=str(home / "home"), TMPDIR=str(home / "tmp"))


def _redirect(home: Path) -> None:
    for name, stream in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        target = os.open("/dev/null" if stream == 0 else home / name, os.O_RDONLY if stream == 0 else 0o1102, 0o666)
        os.dup2(target, stream)
        os.close(target)
    fresh_streams()


def _limit(case: Case) -> None:
    used = 0
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        used = 1024 * int(status.partition("VmData:")[2].split()[0])
    for what, most in (("RLIMIT_DATA", used + MEMORY), ("RLIMIT_CORE", 0), ("RLIMIT_CPU", int(case.limit) + 1)):
        if used or what != "RLIMIT_DATA":
            resource.setrlimit(getattr(resource, what), (most, most))


def _wait(pid: int, limit: float) -> int | None:
    """Return the exit code of a process, or None if it was killed for taking too long."""
    watch = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([watch], [], [], limit)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # also what the case has started
        if not ready:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # in case it had no group of its own yet
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(watch)
    code = os.waitstatus_to_exitcode(status)
    return None if not ready or code == -signal.SIGXCPU else code
