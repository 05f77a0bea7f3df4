"""Files as they are opened: plain or compressed, of a bounded size, and whether somebody has written to one since."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pinoise.errors import UserError, cannot_read, damage_named
from pinoise.files import open_regular

GIB = 1 << 30

_EXCESS = "it may be a decompression bomb; rows of a larger file are read in parts from .npy and Parquet"


class _Bounded(io.RawIOBase):
    """A stream that gives at most ``limit`` bytes of ``inner``, if bounded; errors name ``label``."""

    def __init__(self, inner: Any, label: str, limit: int | None) -> None:
        self._inner, self._label, self._limit, self._given = inner, label, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with damage_named(self._label, Exception):  # damaged bytes can raise any error
            count: int = self._inner.readinto(buffer)
        self._given += count
        if self._limit is not None and self._given > self._limit:
            raise UserError(f"{self._label} holds more than the {self._limit} bytes allowed: {_EXCESS}.")
        return count


def bounded(inner: Any, label: str, limit: int | None) -> io.BufferedReader:
    """Return a stream that gives at most ``limit`` bytes of another; every error names ``label``."""
    return io.BufferedReader(_Bounded(inner, label, limit), buffer_size=1 << 16)


def decompressed(raw: BinaryIO) -> Any:
    """Return what a gzip, bzip2 or plain stream holds."""
    kind = _compression(raw.read(3))
    raw.seek(0)
    return raw if kind is None else gzip.GzipFile(fileobj=raw) if kind == "gzip" else bz2.BZ2File(raw)


def compression_of(path: Path) -> str | None:
    """Return ``"gzip"`` or ``"bz2"``, as Arrow calls them, or None for a plain file."""
    with open_regular(path) as raw:
        return _compression(raw.read(3))


def _compression(start: bytes) -> str | None:
    return "gzip" if start[:2] == b"\x1f\x8b" else "bz2" if start == b"BZh" else None


@contextmanager
def open_compressed(path: Path, *, limit: int | None = GIB) -> Iterator[io.BufferedReader]:
    """Open a gzip, bzip2 or plain file, recognised by its first bytes and not by its name.

    ``limit`` is None for no bound.

    >>> import gzip, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.dat")
    ...     _ = path.write_bytes(gzip.compress(b"alpha beta"))
    ...     with open_compressed(path) as stream:
    ...         print(stream.read())
    b'alpha beta'
    """
    with damage_named(path, OSError):
        raw = open_regular(path)
    with raw:
        yield bounded(decompressed(raw), str(path), limit)


def state_of(path: Path) -> tuple[int, int]:
    """Return the size of a file and the time of its last change, from which a change is known."""
    try:
        found = path.stat()
    except OSError as error:
        raise cannot_read(path, error) from error
    return found.st_size, found.st_mtime_ns


def has_changed(path: Path) -> UserError:
    """Return the error for a file that somebody wrote to while it was used."""
    return UserError(f"{path} has changed while it was used: restore it, and start again; training has --resume.")


def states_of(paths: Iterable[Path]) -> list[list[Any]]:
    """Return path, size and time of change of files: a key by which a change of one is seen."""
    return [[str(path.resolve()), *state_of(path)] for path in paths]
