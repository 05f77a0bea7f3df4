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
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO, cast

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

# All errors by which the standard library reports a damaged file.
_DAMAGE = (
    zlib.error,
    EOFError,
    OSError,
    zipfile.BadZipFile,
    tarfile.TarError,
    NotImplementedError,
    UnicodeDecodeError,
    struct.error,
)


class _Bounded(io.RawIOBase):
    """A stream that gives at most ``limit`` bytes of ``inner``, if bounded, and names ``label`` in every error."""

    def __init__(self, inner: IO[bytes], *, label: str, limit: int | None) -> None:
        self._inner = inner
        self._label = label
        self._limit = limit
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        with damage_named(self._label, _DAMAGE):
            block = self._inner.read(len(view))
        self._given += len(block)
        if self._limit is not None and self._given > self._limit:
            raise UserError(
                f"{self._label} holds more than the {self._limit} bytes allowed: it may be a decompression bomb, or "
                "more than there is memory for, and was not read further."
            )
        view[: len(block)] = block
        return len(block)


def _bounded(inner: IO[bytes], *, label: str, limit: int | None) -> BinaryIO:
    return io.BufferedReader(_Bounded(inner, label=label, limit=limit), buffer_size=1 << 16)


@contextmanager
def open_compressed(path: Path, *, limit: int | None = LIMIT) -> Iterator[BinaryIO]:
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
    with _opened(path) as raw:
        start = raw.read(3)
        raw.seek(0)
        inner: IO[bytes] = raw
        if start[:2] == b"\x1f\x8b":
            inner = cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        elif start == b"BZh":
            inner = bz2.BZ2File(raw)
        yield _bounded(inner, label=str(path), limit=limit)


def members(archive: Archive, pattern: str, *, label: str | None = None, limit: int = LIMIT) -> Members:
    """Yield the name and the stream of every file of a zip or tar(.gz) whose path ends in ``pattern``.

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
    name = label or str(archive)
    with _opened(archive) if isinstance(archive, Path) else nullcontext(archive) as stream:
        stream.seek(0)
        start = stream.read(4)
        stream.seek(0)
        if start[:2] == b"PK":
            yield from _zip_members(stream, pattern, label=name, limit=limit)
        else:
            yield from _tar_members(stream, pattern, label=name, limit=limit, zipped=start[:2] == b"\x1f\x8b")


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise cannot_read(path, error) from error


@contextmanager
def open_member(archive: Archive, pattern: str, *, label: str | None = None, limit: int = LIMIT) -> Iterator[BinaryIO]:
    """Open the one file of an archive whose path ends in ``pattern``; an archive without it is an error."""
    with closing(members(archive, pattern, label=label, limit=limit)) as found:
        first = next(found, None)
        if first is None:
            raise UserError(f"{label or archive} holds no file {pattern!r}.")
        yield first[1]


def open_inner(path: Path, inner: str, *, limit: int = LIMIT) -> tuple[Archive, str]:
    """Return the archive ``inner`` within a zip, read into memory, or the archive itself; and its name in messages."""
    if path.suffix == ".zip":
        with closing(members(path, inner, limit=limit)) as found:
            for _, stream in found:
                return io.BytesIO(stream.read()), f"{path}: {inner}"
    return path, str(path)


def _zip_members(stream: BinaryIO, pattern: str, *, label: str, limit: int) -> Members:
    with damage_named(label, _DAMAGE):
        archive = zipfile.ZipFile(stream)
    with archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            _check_member(info.filename, label=label, plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if info.flag_bits & 0x1:
                raise UserError(f"{label} is protected by a password: unpack it and pack it without one.")
        left = limit
        for info in archive.infolist():
            if info.is_dir() or not PurePosixPath(info.filename).match(pattern):
                continue
            with damage_named(label, _DAMAGE):
                opened = archive.open(info)
            with opened:
                yield info.filename, _bounded(opened, label=label, limit=left)
            left -= info.file_size


def _tar_members(stream: BinaryIO, pattern: str, *, label: str, limit: int, zipped: bool) -> Members:
    inner = cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if zipped else stream
    # The bound is on the whole unpacked tar, headers and skipped members included.
    whole = _bounded(inner, label=label, limit=limit)
    with damage_named(label, _DAMAGE):
        archive = tarfile.open(fileobj=whole, mode="r|", bufsize=tarfile.BLOCKSIZE)  # noqa: SIM115
    with archive:
        while (info := _next_member(archive, label)) is not None:
            _check_member(info.name, label=label, plain=info.isreg() or info.isdir())
            opened = archive.extractfile(info) if PurePosixPath(info.name).match(pattern) else None
            if opened is not None:
                yield info.name, _bounded(opened, label=label, limit=limit)
    # tarfile takes a damaged header for the end; reading on finds it, and lets gzip verify its checksum.
    while rest := whole.read(1 << 16):
        if rest.strip(b"\0"):
            raise damaged(label, ValueError("there is content after the end"))


def _next_member(archive: tarfile.TarFile, label: str) -> tarfile.TarInfo | None:
    with damage_named(label, _DAMAGE):
        return archive.next()


def _check_member(name: str, *, label: str, plain: bool) -> None:
    """Refuse a member that could reach outside a folder or that is neither a file nor a folder."""
    parts = name.replace("\\", "/").split("/")
    outside = parts[0] == "" or parts[0][1:2] == ":" or ".." in parts
    if outside or not plain:
        reason = "a path outside the archive" if outside else "a link or device"
        raise UserError(f"{label} was refused: its member {name!r} is {reason}.")
