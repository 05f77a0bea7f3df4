from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue.loading import unpacked


def write_archive(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"set/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_only_the_files_asked_for_are_unpacked_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_archive(tmp_path / "set_binary.tar.gz", a=b"one", b=b"two", c=b"three")
    folder = unpacked(archive, ["a"], cache=tmp_path / "cache")
    assert folder.parent == tmp_path / "cache/unpacked"
    assert folder.name.startswith("set_binary-")
    assert (folder / "a").read_bytes() == b"one"
    (tmp_path / "new").touch()
    assert (folder / "a").stat().st_mode == (tmp_path / "new").stat().st_mode
    assert not (folder / "b").exists()
    both = unpacked(archive, ["a", "b"], cache=tmp_path / "cache")
    assert [(both / name).read_bytes() for name in "ab"] == [b"one", b"two"]
    monkeypatch.setattr("pinoise.paper.catalogue.loading.open_member", None)
    assert unpacked(archive, ["a"], cache=tmp_path / "cache") == folder
    assert unpacked(archive, ["a", "b"], cache=tmp_path / "cache") == both


def test_files_of_another_archive_or_that_somebody_wrote_to_are_unpacked_again(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "set.tar.gz", a=b"one")
    folder = unpacked(archive, ["a"], cache=tmp_path)
    (folder / "a").write_bytes(b"seven")
    unpacked(archive, ["a"], cache=tmp_path)
    assert (folder / "a").read_bytes() == b"one"
    write_archive(archive, a=b"six")
    os.utime(archive, ns=(7, 7))
    unpacked(archive, ["a"], cache=tmp_path)
    assert (folder / "a").read_bytes() == b"six"


def test_a_file_that_the_archive_lacks_is_named(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "set.tar.gz", a=b"one")
    with pytest.raises(UserError, match=r"set\.tar\.gz holds no file 'z'"):
        unpacked(archive, ["a", "z"], cache=tmp_path)


def test_a_cut_archive_leaves_nothing_that_could_be_believed(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "set.tar.gz", a=os.urandom(100_000))
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(UserError, match=r"set\.tar\.gz is damaged, cut off"):
        unpacked(archive, ["a"], cache=tmp_path)
    assert [path.suffix for path in (tmp_path / "unpacked").iterdir()] == [".lock"]
