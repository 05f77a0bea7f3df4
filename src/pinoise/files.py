"""Shared file operations: atomic writes, what may be written where, locks, JSON, checksums and the cache folder."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinoise.errors import UserError

# What the verbs write in the folder of a run.
REPORT_FILES = ("report.html", "curves.png", "noise.png", "sigma.png", "comparison.png")
RUN_FILES = frozenset(
    (
        *("config.yaml", "data.json", "environment.json", "metrics.csv", "evaluation.json"),
        *("standardizer.safetensors", "encoder.safetensors", "noise.safetensors"),
        *REPORT_FILES,
    )
)
RUN_FOLDERS = ("checkpoints", "tensorboard")


class WriteError(UserError, OSError):
    """A file could not be written, for example because the disk is full; ``strerror`` is the system's reason."""

    def __init__(self, sentence: str, strerror: str | None = None) -> None:
        super().__init__(sentence)
        self.strerror = strerror


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


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Yield a temporary path as ``replacing`` does, for a block that only writes to it: its errors become a sentence.

    >>> with written(Path("/nowhere/z.npy")) as temporary:
    ...     temporary.write_bytes(b"z")
    Traceback (most recent call last):
    ...
    pinoise.files.WriteError: /nowhere/z.npy cannot be written (No such file or directory): make room or choose \
another place; a file that was there before is kept.
    """
    try:
        with replacing(path) as temporary:
            yield temporary
    except WriteError:  # about another file, written in the same block
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(
            f"{path} cannot be written ({reason}): make room or choose another place; a file that was there before is "
            "kept.",
            reason,
        ) from error


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
    with written(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


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


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "abc")
    ...     _ = path.write_bytes(b"abc")
    ...     sha256_of(path)[:16]
    'ba7816bf8f01cfea'
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cache_folder() -> Path:
    """Return the cache folder: ``PINOISE_CACHE`` if it is set, else the platform's folder for caches."""
    folder = os.environ.get("PINOISE_CACHE")
    if folder:
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("pinoise"))


def check_writable(folder: Path, *, what: str, instead: str = "choose another place") -> None:
    """Refuse a folder that cannot be written to, before any work. It need not exist yet.

    Args:
        folder: the folder for the files.
        what: what will be written; the error message names it.
        instead: what the user can do, for the error message.

    >>> check_writable(Path(__file__, "x"), what="a report")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a report cannot be written to ...: ...files.py is a file; choose another place.
    """
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise UserError(f"{what} cannot be written to {folder}: {above} is a file; {instead}.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"{what} cannot be written to {folder}: {above} is not writable; {instead}.")


def real(path: Path) -> Path:
    """Return the full path without links. Links that lead in a circle stay; ``Path.resolve`` would raise an error."""
    return Path(os.path.realpath(path))


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / "config.yaml").exists() and any((folder / name).exists() for name in ("data.json", *RUN_FOLDERS))


def belongs_to_run(path: Path) -> bool:
    """Whether a file, or what it is a link to, is one of those that a run folder is made of. It need not exist.

    >>> belongs_to_run(Path("metrics.csv"))  # no run here
    False
    """
    for place in (real(path.parent) / path.name, real(path)):
        if place.name.lower() in RUN_FILES and is_run(place.parent):
            return True
        if any(above.name in RUN_FOLDERS and is_run(above.parent) for above in place.parents):
            return True
    return False


def check_output(path: Path, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse, before any work, to write over an input, a file of a run or, without ``force``, any other file.

    Args:
        path: the file to write.
        inputs: files and folders that are read.
        force: whether another file may be replaced.

    >>> check_output(Path(__file__), inputs=[Path(__file__)], force=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: ...files.py is an input: choose another file to write.
    """
    if any(_is_in(path, source) for source in inputs):
        raise UserError(f"{path} is an input: choose another file to write.")
    if belongs_to_run(path):
        raise UserError(f"{path} belongs to a run: choose another file to write.")
    if os.path.lexists(path) and not force:
        raise UserError(f"{path} already exists: choose another file to write, or replace it with --force.")


def _is_in(path: Path, source: Path) -> bool:
    """Whether an existing file is the source, under any name, or lies in it."""
    if not path.exists() or not source.exists():
        return False
    return path.samefile(source) or (source.is_dir() and real(path).is_relative_to(real(source)))
