"""Shared file operations: atomic writes, what may be written where, JSON and the cache folder."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pinoise.errors import UserError

# What the verbs write in the folder of a run.
LOCK = "run.lock"
REPORT_FILES = ("report.html", "noise.png", "comparison.png")
RUN_FILES = frozenset(
    {"config.yaml", "data.json", "environment.json", "metrics.csv", "evaluation.json", LOCK, *REPORT_FILES}
    | {"standardizer.safetensors", "encoder.safetensors", "embedding.safetensors", "noise.safetensors"}
    | {"classifier.safetensors"}
)
RUN_FOLDERS = ("checkpoints", "tensorboard")

_TEMPORARY = re.compile(r"\.(?P<stem>.+)\.[0-9a-f]{16}\.part(?P<suffix>\.[^.]*)?")


class WriteError(UserError, OSError):
    """A file could not be written, for example because the disk is full. It is an ``OSError`` too, for callers that can
    do without the file; ``strerror`` is the system's reason."""

    def __init__(self, sentence: str, strerror: str | None = None) -> None:
        super().__init__(sentence)
        self.strerror = strerror


@contextmanager
def writing(path: object, *, advice: str = "make room or choose another place") -> Iterator[None]:
    """Turn the errors of a block that only writes ``path`` into one sentence.

    >>> with writing(Path("gone/a.txt")):
    ...     Path("gone/a.txt").write_text("content")
    Traceback (most recent call last):
    ...
    pinoise.files.WriteError: gone/a.txt cannot be written (No such file or directory): make room or choose another \
place.
    """
    try:
        yield
    except WriteError:  # about another file, written in the same block
        raise
    except OSError as error:
        # Arrow tells the system's reason at the end of its own.
        reason = " ".join((error.strerror or str(error)).rpartition("Detail: ")[2].split())
        raise WriteError(f"{path} cannot be written ({reason}): {advice}.", reason) from error


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
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def replaced_by(temporary: str) -> str | None:
    """Return the name of the file that a temporary file of ``replacing`` would have replaced, or None.

    >>> replaced_by(".config.0123456789abcdef.part.yaml"), replaced_by("config.yaml")
    ('config.yaml', None)
    """
    found = _TEMPORARY.fullmatch(temporary)
    return None if found is None else f"{found['stem']}{found['suffix'] or ''}"


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Yield a temporary path as ``replacing`` does, to a block that only writes: its errors become a sentence."""
    with writing(path), replacing(path) as temporary:
        yield temporary


@contextmanager
def written_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces ``path`` as ``written`` does, after what killed processes left of it is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in (".a.0123456789abcdef.part.npy", ".b.0123456789abcdef.part.npy"):
    ...         Path(folder, name).touch()
    ...     with written_file(Path(folder, "a.npy")) as file:
    ...         _ = file.write(b"content")
    ...     sorted(os.listdir(folder))
    ['.b.0123456789abcdef.part.npy', 'a.npy']
    """
    with written(path) as temporary:
        for file in path.parent.iterdir():
            if replaced_by(file.name) == path.name:
                file.unlink(missing_ok=True)
        with temporary.open("wb") as stream:
            yield stream


def settle(temporary: Path, path: Path) -> None:
    """Flush a finished temporary file to disk and rename it to ``path``."""
    sync(temporary)
    temporary.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
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
        # Names of files may hold bytes that are not UTF-8; they are written as escapes.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def to_json(value: object) -> str:
    """Return a value as indented JSON. A number that is not finite becomes null.

    >>> print(to_json({"loss": 0.5, "sigma": float("nan")}))
    {
      "loss": 0.5,
      "sigma": null
    }
    """
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    return json.dumps(finite, indent=2, ensure_ascii=False)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    write_text(path, to_json(value) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder."""
    try:
        with open_regular(path) as stream:
            return json.load(stream)
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the folder is not a finished run.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error}): the run folder is damaged.") from None


def check_is_file(path: Path) -> None:
    """Refuse what cannot be read, such as folders, and pipes, on which a reader would wait.

    >>> check_is_file(Path("/"))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: / cannot be read: it is a folder.
    """
    try:
        open_regular(path).close()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes. A pipe, a socket or a device, whose reading could wait for ever, is an OSError."""
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
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
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
    present = [each for each in inputs if path.exists() and each.exists()]
    if any(path.samefile(each) or real(path).is_relative_to(real(each)) for each in present):
        raise UserError(f"{path} is an input: choose another file to write.")
    if belongs_to_run(path):
        raise UserError(f"{path} belongs to a run: choose another file to write.")
    if os.path.lexists(path) and not force:
        raise UserError(f"{path} already exists: choose another file to write, or replace it with --force.")


def check_new_file(
    path: Path, *, extensions: Sequence[str], what: str, inputs: Iterable[Path] = (), force: bool = False
) -> None:
    """Refuse, before any work, a file that cannot be written or has no extension for what it is to hold.

    Args:
        path: the file to write.
        extensions: those that are allowed, in lower case.
        what: what will be written; the error message names it.
        inputs: as in ``check_output``.
        force: as in ``check_output``.

    >>> check_new_file(Path("z.txt"), extensions=[".npy", ".csv"], what="an embedding")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: z.txt has extension '.txt': an embedding is written as .npy, .csv.
    """
    if path.suffix.lower() not in extensions:
        found = f"has extension {path.suffix!r}" if path.suffix else "has no extension"
        raise UserError(f"{path} {found}: {what} is written as {', '.join(extensions)}.")
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the file to write.")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    check_writable(path.parent, what=what)
    check_output(path, inputs=inputs, force=force)
