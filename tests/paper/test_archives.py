"""Archives and compressed files: what is read, and everything that is refused."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pinoise.data.formats.opened import open_compressed
from pinoise.errors import UserError
from pinoise.paper.archives import Members, members, open_member


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=zipfile.ZIP_DEFLATED)
    return path


def write_tar(path: Path, files: dict[str, bytes], *, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_plain_tar(path: Path, files: dict[str, bytes]) -> Path:
    return write_tar(path, files, mode="w")


def read_all(found: Members) -> list[bytes]:
    return [stream.read() for _, stream in found]


WRITERS = pytest.mark.parametrize("write", [write_zip, write_tar, write_plain_tar])
Writer = Callable[[Path, dict[str, bytes]], Path]


@WRITERS
def test_members_that_match_are_streamed_in_order_and_nothing_is_unpacked(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "set", {"set/": b"", "set/b.sgm": b"second", "set/a.sgm": b"first", "set/README": b"x"})
    assert [(name, stream.read()) for name, stream in members(path, "*.sgm")] == [
        ("set/b.sgm", b"second"),
        ("set/a.sgm", b"first"),
    ]
    assert list(tmp_path.iterdir()) == [path]


@WRITERS
def test_a_member_is_found_by_the_end_of_its_path(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "set", {"outer/other_train/x.txt": b"no", "outer/train/x.txt": b"1 2\n3 4\n"})
    with open_member(path, "train/x.txt") as stream:
        assert stream.readlines() == [b"1 2\n", b"3 4\n"]
    with pytest.raises(UserError, match=r"set holds no file 'y.txt'"), open_member(path, "y.txt"):
        pass


@WRITERS
@pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "a/../../up.txt", "a\\..\\up.txt", "C:\\up.txt"])
def test_a_path_outside_the_archive_is_refused_even_when_another_member_is_asked_for(
    write: Writer, name: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "evil", {name: b"x", "good.txt": b"y"})
    with pytest.raises(UserError, match=r"evil was refused: its member .* is a path outside the archive"):
        list(members(path, "good.txt"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("innocent.txt")
        info.type = kind
        info.linkname = "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(UserError, match=r"'innocent.txt' is a link or device"):
        list(members(path, "*"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_devices_in_a_zip_are_refused(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "evil.zip"
    info = zipfile.ZipInfo("innocent.txt")
    info.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(UserError, match=r"'innocent.txt' is a link or device"):
        list(members(path, "*"))


@WRITERS
def test_a_decompression_bomb_is_stopped_at_the_bound(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "bomb", {"zeros": bytes(5_000_000)})
    message = r"bomb holds more than the 1000000 bytes allowed"
    with pytest.raises(UserError, match=message), open_member(path, "zeros", limit=1_000_000) as stream:
        stream.read()


@WRITERS
def test_the_bound_is_on_all_members_together(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "bomb", {f"zeros{index}": bytes(400_000) for index in range(5)})
    found = members(path, "zeros*", limit=1_000_000)
    assert len(next(found)[1].read()) == 400_000
    with pytest.raises(UserError, match="bytes allowed"):
        read_all(found)


def test_a_tar_bomb_is_stopped_while_it_is_skipped(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "bomb", {"zeros": bytes(5_000_000), "wanted": b"x"})
    with pytest.raises(UserError, match="bytes allowed"):
        list(members(path, "wanted", limit=1_000_000))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, bytes])
def test_a_compressed_file_is_recognised_by_content_and_bounded(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "table.dat"
    path.write_bytes(compress(b"1 1:2\n" * 1000))
    with open_compressed(path) as stream:
        assert list(stream) == [b"1 1:2\n"] * 1000
    with pytest.raises(UserError, match="bytes allowed"), open_compressed(path, limit=5999) as stream:
        stream.read()


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_compressed_file_cut_short_is_one_sentence(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "table.gz"
    whole = compress(b"".join(b"%d 1:2\n" % number for number in range(100_000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"table.gz is damaged"), open_compressed(path) as stream:
        stream.read()


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_an_archive_cut_short_is_one_sentence(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path / "set", {"a": bytes(range(256)) * 1000, "b": b"x"})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"set is damaged"):
        read_all(members(path, "*"))


def test_a_spoiled_header_in_a_tar_does_not_pass_for_the_end(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "set", {name: name.encode() for name in "abc"})
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[1024 + 150] ^= 1  # in the checksum of the second header
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(UserError, match=r"set is damaged.*content after the end"):
        read_all(members(path, "*"))


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_random_damage_is_only_ever_a_users_error(write: Writer, tmp_path: Path) -> None:
    whole = write(tmp_path / "set", {"a/ü.txt": b"alpha " * 50, "b.txt": bytes(range(256))}).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged"
    for _ in range(300):
        content = np.frombuffer(whole, dtype=np.uint8).copy()
        content[rng.integers(len(content), size=3)] = rng.integers(256, size=3)
        path.write_bytes(content.tobytes())
        with contextlib.suppress(UserError):
            read_all(members(path, "*"))


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_an_archive_within_another_is_read_in_place_of_it(write: Writer, tmp_path: Path) -> None:
    inner = write_tar(tmp_path / "inner.tar", {"a.txt": b"inner"}).read_bytes()
    path = write(tmp_path / "outer", {"inner.tar": inner, "a.txt": b"outer"})
    assert read_all(members(path, "a.txt", inner="inner.tar")) == [b"inner"]
    assert read_all(members(path, "a.txt", inner="absent.tar")) == [b"outer"]
    path = write(tmp_path / "outer", {"inner.tar": inner[:-10]})
    with pytest.raises(UserError, match=r"outer: inner\.tar is damaged"):
        read_all(members(path, "a.txt", inner="inner.tar"))
