"""A warm process that forks for every case, so that a case can crash, hang, fill memory or change its world alone.

``python -m tests.hostile.server FOLDER`` reads the names and seeds of cases from standard input, one JSON object per
line, and answers each with its outcome. ``Server`` is its other end.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from tests.hostile.case import Case, Outcome, Wrong
from tests.hostile.forks import fresh_streams, leave
from tests.hostile.judge import judge, read_ended, snapshot

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 3 << 29  # bytes that a case may use beyond the warm process: 1.5 GiB
BROKEN = 97  # the exit code of a case that could not be made: a fault of the suite
NOBODY = 65534
CLEARED = ("PINOISE_DATA", "LOCAL_RANK", "RANK", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_JOB_ID")


def run_case(case: Case, reference: Path, scratch: Path) -> Outcome:
    """Run one case in a process of its own and judge it. Its files are removed."""
    home = Path(tempfile.mkdtemp(dir=scratch))
    folder = home / "case"
    folder.mkdir()
    try:
        pid = os.fork()
        if pid == 0:
            _child(case, reference, home, folder)
        code = _wait(pid, case.limit)
        if code == BROKEN:
            raise RuntimeError(f"{case.name} could not be made:\n{(home / 'stderr').read_text()}")
        started = home / "before.json"
        before = json.loads(started.read_text()) if started.exists() else {}
        ended = read_ended(home, code)
        if os.environ.get("HOSTILE_SHOW"):
            print(
                f"exit code {ended.code}\n{ended.out}{ended.err}{(ended.raised or {}).get('traceback', '')}",
                file=sys.stderr,
            )
        return judge(case, ended, before, folder, reference)
    finally:
        _remove(home)


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
        _surround(case, home)
        case.make(reference, case.rng)
        (home / "before.json").write_text(json.dumps(snapshot(folder)))
        if case.humble and os.getuid() == 0:
            _give_up_root(home)
        _limit(case)
        code = _call(case, home)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _call(case: Case, home: Path) -> int:
    from tests.hostile.reference import command

    if not callable(case.call):
        try:
            return command(*case.call)
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


def _surround(case: Case, home: Path) -> None:
    for name in CLEARED:
        os.environ.pop(name, None)
    for name in ("cache", "home", "tmp"):
        (home / name).mkdir()
    os.environ.update(PINOISE_CACHE=str(home / "cache"), HOME=str(home / "home"), TMPDIR=str(home / "tmp"))
    for name, value in case.environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _redirect(home: Path) -> None:
    for name, stream in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        target = os.open("/dev/null" if stream == 0 else home / name, os.O_RDONLY if stream == 0 else 0o1102, 0o666)
        os.dup2(target, stream)
        os.close(target)
    fresh_streams()


def _give_up_root(home: Path) -> None:
    for folder, names, files in os.walk(home):
        for name in (".", *names, *files):
            os.chown(Path(folder, name), NOBODY, NOBODY, follow_symlinks=False)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


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


def _remove(folder: Path) -> None:
    for path, names, _ in os.walk(folder):
        for name in (".", *names):
            with contextlib.suppress(OSError):
                Path(path, name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def serve(scratch: Path) -> None:
    """Answer cases until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other end, which closes standard input
    import torch
    from tests.hostile.families import SIZES, cases, find_case
    from tests.hostile.reference import prepare

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not disturb the answers
    reference = scratch / "reference"
    reference.mkdir()
    prepare(reference)
    for family in SIZES:
        cases(family, 0)  # all modules now, so that an edit during a long run does not mix two versions
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer: dict[str, Any] = run_case(find_case(asked["name"], asked["seed"]), reference, scratch)._asdict()
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


class Server:
    """A warm process, and the way to ask it."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True)
        Path(self._scratch.name).chmod(0o755)  # a case without root's rights must get in
        # More than one thread of OpenMP does not survive a fork.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.server", self._scratch.name],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._answers, self._questions = self._process.stdout, self._process.stdin
        if self._answers.readline().strip() != "ready":
            raise RuntimeError("the server of hostile cases did not start; its error is above")

    def run(self, name: str, seed: int = 0) -> Outcome:
        """Run the case of that name."""
        print(json.dumps({"name": name, "seed": seed}), file=self._questions, flush=True)
        answer = json.loads(self._answers.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return Outcome(**answer)

    def close(self) -> None:
        """Let the process end, and remove its files."""
        with contextlib.suppress(OSError):
            self._questions.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.cleanup()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
