"""Compressed files and archive members as bounded streams; nothing is ever unpacked on disk.

A file from the network is not trusted. An archive with an absolute path, a path that leaves it with ``..``,
a link or a device is refused as a whole. Reading stops with an error after ``limit`` bytes, which a decompression bomb
exceeds. Damage of any kind is one clear sentence.
"""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from pinoise.data.messages import cannot_read, damage_named, damaged
from pinoise.errors import UserError
from pinoise.files import open_regular

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GIB = 1 << 30
LIMIT = GIB
"""The default bound on the bytes that may come out of one archive or compressed file."""

Archive = Path | BinaryIO
Members = Generator[tuple[str, BinaryIO], None, None]

_BOMB = "it may be a decompression bomb, or more than there is memory for, and was not read further"


class _Bounded(io.RawIOBase):
    """A stream that gives at most ``limit`` bytes of ``inner``, if bounded, and names ``label`` in every error."""

    def __init__(self, inner: Any, *, label: str, limit: int | None, excess: str) -> None:
        self._inner, self._label, self._limit, self._excess = inner, label, limit, excess
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        with damage_named(self._label, Exception):  # damaged bytes can raise any error
            count: int = self._inner.readinto(buffer)
        self._given += count
        if self._limit is not None and self._given > self._limit:
            raise UserError(f"{self._label} holds more than the {self._limit} bytes allowed: {self._excess}.")
        return count


def _bounded(inner: Any, *, label: str, limit: int | None, excess: str = _BOMB) -> BinaryIO:
    return io.BufferedReader(_Bounded(inner, label=label, limit=limit, excess=excess), buffer_size=1 << 16)


def _decompressed(raw: BinaryIO) -> Any:
    """Return what a gzip, bzip2 or plain stream holds."""
    start = raw.read(3)
    raw.seek(0)
    if start[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=raw)
    return bz2.BZ2File(raw) if start == b"BZh" else raw


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise cannot_read(path, error) from error


@contextmanager
def open_compressed(path: Path, *, limit: int | None = LIMIT, excess: str = _BOMB) -> Iterator[BinaryIO]:
    """Open a gzip, bzip2 or plain file, recognised by its first bytes and not by its name.

    ``limit`` is None for no bound; ``excess`` ends the sentence for a file that exceeds it.

    >>> import gzip, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.dat")
    ...     _ = path.write_bytes(gzip.compress(b"alpha beta"))
    ...     with open_compressed(path) as stream:
    ...         print(stream.read())
    b'alpha beta'
    """
    with _opened(path) as raw:
        yield _bounded(_decompressed(raw), label=str(path), limit=limit, excess=excess)


def members(archive: Archive, pattern: str, *, label: str | None = None, limit: int = LIMIT) -> Members:
    """Yield the name and the stream of every file of a zip or tar(.gz, .bz2) whose path ends in ``pattern``.

    ``pattern`` is a glob for the last parts of the path, such as ``train/X_train.txt`` or ``*.sgm``. A stream is
    valid until the next one is taken. ``limit`` bounds what comes out of the whole archive, and ``label``
    names an archive that is not a file of its own.

    >>> archive = io.BytesIO()
    >>> with zipfile.ZipFile(archive, "w") as file:
    ...     file.writestr("set/train/x.txt", "1 2")
    ...     file.writestr("set/README", "read me")
    >>> [(name, stream.read()) for name, stream in members(archive, "train/*.txt", label="toy.zip")]
    [('set/train/x.txt', b'1 2')]
    """
    with _opened(archive) if isinstance(archive, Path) else nullcontext(archive) as stream:
        stream.seek(0)
        read = _zip_members if stream.read(2) == b"PK" else _tar_members
        stream.seek(0)
        yield from read(stream, pattern, label=label or str(archive), limit=limit)


@contextmanager
def open_member(archive: Archive, pattern: str, *, label: str | None = None, limit: int = LIMIT) -> Iterator[BinaryIO]:
    """Open the one file of an archive whose path ends in ``pattern``; an archive without it is an error."""
    with closing(members(archive, pattern, label=label, limit=limit)) as found:
        first = next(found, None)
        if first is None:
            raise UserError(f"{label or archive} holds no file {pattern!r}.")
        yield first[1]


def open_inner(path: Path, inner: str) -> tuple[Archive, str]:
    """Return the archive ``inner`` within a zip, read into memory, or the archive itself; and its name in messages."""
    if path.suffix == ".zip":
        for _, stream in members(path, inner):
            return io.BytesIO(stream.read()), f"{path}: {inner}"
    return path, str(path)


def _zip_members(stream: BinaryIO, pattern: str, *, label: str, limit: int) -> Members:
    with damage_named(label, Exception):
        archive = zipfile.ZipFile(stream)
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        _check_member(info.filename, label=label, plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
    for info in archive.infolist():
        if PurePosixPath(info.filename).match(pattern) and not info.is_dir():
            with damage_named(label, Exception):
                opened = archive.open(info)
            yield info.filename, _bounded(opened, label=label, limit=limit)
            limit -= info.file_size


def _tar_members(stream: BinaryIO, pattern: str, *, label: str, limit: int) -> Members:
    # The bound is on the whole unpacked tar, headers and skipped members included.
    whole = _bounded(_decompressed(stream), label=label, limit=limit)
    with damage_named(label, Exception):
        archive = tarfile.open(fileobj=whole, mode="r|", bufsize=tarfile.BLOCKSIZE)  # noqa: SIM115
    while (info := _next_member(archive, label)) is not None:
        _check_member(info.name, label=label, plain=info.isreg() or info.isdir())
        if info.isreg() and PurePosixPath(info.name).match(pattern):
            yield info.name, _bounded(archive.extractfile(info), label=label, limit=limit)
    # tarfile takes a damaged header for the end; reading on finds it, and lets gzip verify its checksum.
    while rest := whole.read(1 << 16):
        if rest.strip(b"\0"):
            raise damaged(label, ValueError("there is content after the end"))


def _next_member(archive: tarfile.TarFile, label: str) -> tarfile.TarInfo | None:
    with damage_named(label, Exception):
        return archive.next()


def _check_member(name: str, *, label: str, plain: bool) -> None:
    """Refuse a member that could reach outside a folder or that is neither a file nor a folder."""
    parts = name.replace("\\", "/").split("/")
    outside = parts[0] == "" or parts[0][1:2] == ":" or ".." in parts
    if outside or not plain:
        reason = "a path outside the archive" if outside else "a link or device"
        raise UserError(f"{label} was refused: its member {name!r} is {reason}.")
