"""Shared file operations: atomic writes, locks, JSON, checksums and the cache folder."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinoise.errors import UserError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` when the block ends without an error.

    A reader sees the old file or the new one, never a partial one, even after a crash. After an error the old file
    stays and the temporary file is removed. The temporary name keeps the suffix, because some writers depend on it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a.txt")) as temporary:
    ...         _ = temporary.write_text("content")
    ...     Path(folder, "a.txt").read_text(), len(os.listdir(folder))
    ('content', 1)
    """
    # Not tempfile: only their owner may read its files.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(8)}.part{path.suffix}")
    try:
        yield temporary
        settle(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def settle(temporary: Path, path: Path) -> None:
    """Flush a finished temporary file to disk and rename it to ``path``."""
    _sync(temporary)
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if path.is_file():  # some file systems cannot sync a folder; the file itself must be on disk
            raise
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def to_json(value: object) -> str:
    """Return a value as indented JSON. A number that is not finite becomes null.

    >>> print(to_json({"loss": 0.5, "sigma": float("nan")}))
    {
      "loss": 0.5,
      "sigma": null
    }
    """
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    write_text(path, to_json(value) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the folder is not a finished run.") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): the run folder is damaged.") from None


def write_sealed(path: Path, value: object) -> None:
    """Write a JSON file of a cache atomically, with a checksum."""
    text = json.dumps(value)
    write_text(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n")


def read_sealed(path: Path) -> Any:
    """Read what ``write_sealed`` wrote. A file that was altered is a ValueError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sealed(Path(folder, "a"), {"rows": 3})
    ...     read_sealed(Path(folder, "a"))
    {'rows': 3}
    """
    seal, _, text = path.read_text(encoding="utf-8").partition("\n")
    if hashlib.sha256(text.removesuffix("\n").encode()).hexdigest() != seal:
        raise ValueError(f"{path} is not as it was written")
    return json.loads(text)


@contextmanager
def locked(path: Path, *, waiting: str | None = None) -> Iterator[None]:
    """Let one process at a time run the block, with a lock file beside ``path``.

    The system frees the lock when its process ends. A process that has to wait prints the sentence ``waiting``. The
    empty lock file stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "a")):
    ...     os.listdir(folder)
    ['a.lock']
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if waiting is not None:
            print(waiting, file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes. A pipe, a socket or a device, whose reading could wait for ever, is an OSError.

    >>> open_regular(Path("/dev/null"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] it is a device, not a regular file: '/dev/null'
    """
    # Without waiting: to open a pipe means to wait for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a device"
    raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "abc")
    ...     _ = path.write_bytes(b"abc")
    ...     sha256_of(path)[:16]
    'ba7816bf8f01cfea'
    """
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def expanded(path: str | Path) -> Path:
    """Return a path in which ``~`` is the home folder. A user that does not exist is an error.

    >>> expanded("~nosuchuser/x.csv")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: ~nosuchuser/x.csv cannot be found: there is no user of that name.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UserError(f"{path} cannot be found: there is no user of that name.") from error


def cache_folder() -> Path:
    """Return the cache folder: ``PINOISE_CACHE`` if it is set, else the platform's folder for caches."""
    folder = os.environ.get("PINOISE_CACHE")
    if folder:
        return expanded(folder)
    import pooch

    return Path(pooch.os_cache("pinoise"))


def check_writable(folder: Path, *, what: str) -> None:
    """Refuse a folder that cannot be written to, before any work. It need not exist yet.

    Args:
        folder: the folder for the files.
        what: what will be written; the error message names it.

    >>> check_writable(Path(__file__, "x"), what="a report")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a report cannot be written to ...: ...files.py is a file; choose another place.
    """
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise UserError(f"{what} cannot be written to {folder}: {above} is a file; choose another place.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"{what} cannot be written to {folder}: {above} is not writable; choose another place.")
