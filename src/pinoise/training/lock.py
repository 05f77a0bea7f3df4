"""One process at a time, or one group of processes, trains in a run folder."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinoise.errors import UserError
from pinoise.files import LOCK_FILES, read_json, write_json, writing

LOCK, HOLDER = LOCK_FILES
_PATIENCE = 1.0  # seconds; a process that only looks holds the lock for a moment
_NO_LOCKS = {getattr(errno, name, None) for name in ("ENOSYS", "ENOLCK", "EOPNOTSUPP")}


class Holder(BaseModel):
    """The process that holds a run folder, as ``run.lock.json`` names it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    pid: int = Field(ge=1)
    host: str
    since: str
    command: str

    @classmethod
    def this(cls) -> Holder:
        """Return this process."""
        program, *arguments = sys.argv or ["python"]
        name = "pinoise" if program.endswith("__main__.py") else Path(program).name
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        return cls(pid=os.getpid(), host=socket.gethostname(), since=since, command=shlex.join([name, *arguments]))

    def __str__(self) -> str:
        words = f"process {self.pid} on {self.host} since {self.since} ({self.command[:200]})"
        return "".join(letter if letter.isprintable() else "?" for letter in words)


@contextmanager
def hold(folder: Path, *, note: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Create a run folder if it is not there, and let no other process train in it until the block ends.

    The system frees the lock when its process ends, however it ends. The empty ``run.lock`` stays, so that no two
    processes lock different files. A folder that is still empty after the block is removed.

    Args:
        folder: the run folder.
        note: called with a sentence about a process that was killed, or about a file system without locks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with hold(Path(place, "run")):
    ...         sorted(os.listdir(Path(place, "run")))
    ...     os.listdir(place)
    ['run.lock', 'run.lock.json']
    []
    """
    with writing(folder / LOCK):
        folder.mkdir(parents=True, exist_ok=True)
    lock = _acquire(folder)
    try:
        before = _holder(folder)
        _refuse_unknown(folder, before, locked=lock is not None)
        if lock is None:
            note(f"the file system of {folder} has no locks: make sure that no other process trains in it.")
        elif before is not None:
            note(f"{folder} was left without a word by {before}: going on with it.")
        write_json(folder / HOLDER, Holder.this().model_dump())
        try:
            yield
        finally:
            (folder / HOLDER).unlink(missing_ok=True)
    finally:
        try:
            with suppress(OSError):  # the folder may be gone
                if {file.name for file in folder.iterdir()} <= {LOCK}:
                    (folder / LOCK).unlink(missing_ok=True)
                    folder.rmdir()
        finally:
            if lock is not None:
                lock.release()


def refuse_if_held(folder: Path) -> None:
    """Refuse a folder that another process trains in, before any work. Nothing is written."""
    if not (folder / LOCK).exists():
        return
    lock = _acquire(folder)
    try:
        _refuse_unknown(folder, _holder(folder), locked=lock is not None)
    finally:
        if lock is not None:
            lock.release()


def _acquire(folder: Path) -> FileLock | None:
    """Return the lock of a folder, or None if its file system has no locks. A lock that is taken is refused."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=_PATIENCE)
    except Timeout:
        raise UserError(_in_use(folder, _holder(folder))) from None
    except NotImplementedError:
        return None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        with writing(folder / LOCK):
            raise
    return lock


def _refuse_unknown(folder: Path, holder: Holder | None, *, locked: bool) -> None:
    """Refuse a folder whose last holder may still run: on another machine, or on a file system without locks."""
    if holder is None:
        return
    if holder.host != socket.gethostname():
        raise UserError(
            f"{folder} was last used by {holder}, and whether that still runs cannot be checked from "
            f"{socket.gethostname()}: if it has ended, delete {folder / HOLDER}."
        )
    if not locked and _runs(holder.pid):
        raise UserError(_in_use(folder, holder))


def _in_use(folder: Path, holder: Holder | None) -> str:
    return f"{folder} is in use by {holder or 'another process'}: wait until it ends, or stop it."


def _holder(folder: Path) -> Holder | None:
    """Return the process that a folder names, or None if it names none that can be read."""
    try:
        return Holder.model_validate(read_json(folder / HOLDER))
    except (UserError, ValidationError):
        return None


def _runs(pid: int) -> bool:
    """Whether a process of this machine runs. Only POSIX can tell without harm.

    >>> _runs(os.getpid())
    True
    """
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
