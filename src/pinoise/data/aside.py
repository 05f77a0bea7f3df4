"""Files of caches, written by one process at a time, aside, and renamed once they are complete and on disk."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends without an error; others may read it as any new file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_aside(Path(folder, "a")) as stream:
    ...         _ = stream.write(b"content")
    ...     Path(folder, "a").read_bytes(), len(os.listdir(folder))
    (b'content', 1)
    """
    # Not by mkstemp, whose files nobody else may read.
    temporary = path.with_name(f"{path.name}{secrets.token_hex(8)}.part")
    stream = temporary.open("xb")
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def alone(path: Path, *, told: str | None = None) -> Iterator[None]:
    """Let one process at a time into the block, by a lock beside ``path`` that the system frees when its holder dies.

    ``told`` is written to the terminal by whoever has to wait. The empty file of the lock stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder, "a")):
    ...     os.listdir(folder)
    ['a.lock']
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if told is not None:
            print(told, file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
