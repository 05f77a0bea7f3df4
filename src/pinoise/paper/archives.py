"""The members of archives as bounded streams.

A file from the network is not trusted. An archive with an absolute path, a path that leaves it with ``..``,
a link or a device is refused as a whole. Reading stops with an error after ``limit`` bytes, which a decompression bomb
exceeds. Damage of any kind is one clear sentence.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from pinoise.data.formats.opened import GIB, bounded, decompressed
from pinoise.errors import UserError, damage_named
from pinoise.files import open_regular

Members = Generator[tuple[str, BinaryIO], None, None]


def members(path: Path, pattern: str, *, inner: str = "", limit: int = GIB) -> Members:
    """Yield the name and the stream of every file of a zip or tar(.gz, .bz2) whose path ends in ``pattern``.

    ``pattern`` is a glob for the last parts of the path, such as ``train/X_train.txt`` or ``*.sgm``. A stream is
    valid until the next one is taken. An archive ``inner`` within this one is read in place of it where there is one.
    ``limit`` bounds what comes out of the whole archive.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.zip")
    ...     with zipfile.ZipFile(path, "w") as archive:
    ...         archive.writestr("set/train/x.txt", "1 2")
    ...         archive.writestr("set/README", "read me")
    ...     [(name, stream.read()) for name, stream in members(path, "train/*.txt")]
    [('set/train/x.txt', b'1 2')]
    """
    with damage_named(path, Exception), open_regular(path) as stream:
        for _, archive in _members(stream, inner, str(path), limit) if inner else ():
            yield from _members(io.BytesIO(archive.read()), pattern, f"{path}: {inner}", limit)
            return
        yield from _members(stream, pattern, str(path), limit)


@contextmanager
def open_member(path: Path, pattern: str, *, limit: int = GIB) -> Iterator[BinaryIO]:
    """Open the one file of an archive whose path ends in ``pattern``; an archive without it is an error."""
    with closing(members(path, pattern, limit=limit)) as found:
        first = next(found, None)
        if first is None:
            raise UserError(f"{path} holds no file {pattern!r}.")
        yield first[1]


def _members(stream: BinaryIO, pattern: str, label: str, limit: int) -> Members:
    stream.seek(0)
    read = _zip_members if stream.read(2) == b"PK" else _tar_members
    stream.seek(0)
    return read(stream, pattern, label, limit)


def _zip_members(stream: BinaryIO, pattern: str, label: str, limit: int) -> Members:
    archive = zipfile.ZipFile(stream)
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        _check_member(info.filename, label, plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
    for info in archive.infolist():
        if PurePosixPath(info.filename).match(pattern) and not info.is_dir():
            yield info.filename, bounded(archive.open(info), label, limit)
            limit -= info.file_size


def _tar_members(stream: BinaryIO, pattern: str, label: str, limit: int) -> Members:
    # The bound is on the whole unpacked tar, headers and skipped members included.
    whole = bounded(decompressed(stream), label, limit)
    archive = tarfile.open(fileobj=whole, mode="r|", bufsize=tarfile.BLOCKSIZE)  # noqa: SIM115
    for info in archive:
        _check_member(info.name, label, plain=info.isreg() or info.isdir())
        if info.isreg() and PurePosixPath(info.name).match(pattern):
            yield info.name, bounded(archive.extractfile(info), label, limit)
    # tarfile takes a damaged header for the end; reading on finds it, and lets gzip verify its checksum.
    while rest := whole.read(1 << 16):
        if rest.strip(b"\0"):
            raise ValueError("there is content after the end")


def _check_member(name: str, label: str, *, plain: bool) -> None:
    """Refuse a member that could reach outside a folder or that is neither a file nor a folder."""
    path = PureWindowsPath(name)  # knows both slashes, and drives
    if (outside := bool(path.anchor) or ".." in path.parts) or not plain:
        reason = "a path outside the archive" if outside else "a link or device"
        raise UserError(f"{label} was refused: its member {name!r} is {reason}.")
