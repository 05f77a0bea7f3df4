from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images.decoding import ImageFiles
from pinoise.data.images.reading import read_image_folder
from pinoise.data.lazy import FileRows
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("train/a/0.png", "train/a/1.png", "train/b/2.png", "test/a/3.png", "test/b/4.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (5, 4, 3), dtype=np.uint8)).save(path)
    return tmp_path / "photos"


def arrays(folder: Path, cache: Path, options: ReadOptions | None = None) -> tuple[Any, Any]:
    raw = read_image_folder(folder, replace(options or ReadOptions(), cache=cache))
    assert raw.test is not None
    assert not isinstance(raw.train.x, ImageFiles)
    assert not isinstance(raw.test.x, ImageFiles)
    return raw.train.x, raw.test.x


def kept_in(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.is_dir()]


def test_the_first_reading_decodes_and_later_ones_map(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = read_image_folder(folder, ReadOptions())
    assert plain.test is not None
    first = arrays(folder, tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr("pinoise.data.images.decoding.decode", None)
        patch.setattr("pinoise.data.images.reading.inspect_image", None)
        second = read_image_folder(folder, ReadOptions(cache=tmp_path / "cache"))
    assert second.test is not None
    assert second.notes == (f"read from the decoded images kept in {tmp_path / 'cache'}",)
    assert np.asarray(second.train.y).tolist() == ["a", "a", "b"]
    for x in (first[0], second.train.x):
        assert isinstance(x, FileRows)
        np.testing.assert_array_equal(x, plain.train.x[:])
    for x in (first[1], second.test.x):
        np.testing.assert_array_equal(x, plain.test.x[:])
    (kept,) = kept_in(tmp_path / "cache")
    assert sorted(path.name for path in kept.iterdir()) == [
        *("0.npy", "0.sha256.npy", "1.npy", "1.sha256.npy"),
        "about.json",
    ]
    np.testing.assert_array_equal(np.load(kept / "0.npy"), plain.train.x[:])


def change_content(folder: Path) -> None:
    path = folder / "train/a/1.png"
    Image.fromarray(np.full((5, 4, 3), 7, np.uint8)).save(path)
    os.utime(path, ns=(1, 1))


def add_a_file(folder: Path) -> None:
    Image.fromarray(np.full((5, 4, 3), 8, np.uint8)).save(folder / "train/b/9.png")


def remove_a_file(folder: Path) -> None:
    (folder / "train/a/0.png").unlink()


def rename_a_file(folder: Path) -> None:
    (folder / "train/a/0.png").rename(folder / "train/b/0.png")


@pytest.mark.parametrize("change", [change_content, add_a_file, remove_a_file, rename_a_file])
def test_a_stale_cache_is_made_again(change: Any, folder: Path, tmp_path: Path) -> None:
    before = np.array(arrays(folder, tmp_path / "cache")[0])
    change(folder)
    after = arrays(folder, tmp_path / "cache")[0]
    np.testing.assert_array_equal(after, read_image_folder(folder, ReadOptions()).train.x[:])
    assert not np.array_equal(before, after)
    assert len(kept_in(tmp_path / "cache")) == 1


def test_each_choice_of_options_has_its_own_arrays(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert arrays(folder, cache)[0].shape == (3, 5, 4, 3)
    assert arrays(folder, cache, ReadOptions(size=2))[0].shape == (3, 2, 2, 3)
    assert arrays(folder, cache, ReadOptions(color="gray"))[0].shape == (3, 5, 4)
    assert arrays(folder, cache)[0].shape == (3, 5, 4, 3)
    assert len(kept_in(cache)) == 3


def cut_record(kept: Path) -> None:
    record = kept / "about.json"
    record.write_text(record.read_text()[:30])


def other_record(kept: Path) -> None:
    (kept / "about.json").write_text("[1, 2]")


def other_pixel(kept: Path) -> None:
    array = kept / "0.npy"
    content = bytearray(array.read_bytes())
    content[-1] ^= 1
    array.write_bytes(bytes(content))


def cut_array(kept: Path) -> None:
    array = kept / "0.npy"
    array.write_bytes(array.read_bytes()[:-5])


def no_array(kept: Path) -> None:
    (kept / "1.npy").unlink()


def other_checksums(kept: Path) -> None:
    np.save(kept / "0.sha256.npy", np.zeros((2, 32), np.uint8))


@pytest.mark.parametrize(
    "damage",
    [cut_record, other_record, other_pixel, cut_array, no_array, other_checksums],
    ids=lambda each: each.__name__,
)
def test_kept_images_that_somebody_wrote_to_are_decoded_again(damage: Any, folder: Path, tmp_path: Path) -> None:
    expected = np.array(arrays(folder, tmp_path / "cache")[0])
    (kept,) = kept_in(tmp_path / "cache")
    damage(kept)
    np.testing.assert_array_equal(arrays(folder, tmp_path / "cache")[0], expected)


def test_a_new_note_and_no_image_decodes_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays(folder, tmp_path / "cache")
    (folder / "train/a/notes.txt").touch()
    monkeypatch.setattr("pinoise.data.images.decoding.decode", None)
    notes = read_image_folder(folder, ReadOptions(cache=tmp_path / "cache")).notes
    assert notes == (
        "left out 1 file without the extension of an image: train/a/notes.txt",
        f"read from the decoded images kept in {tmp_path / 'cache'}",
    )


def test_a_reading_that_breaks_off_leaves_nothing_half_made(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays(folder, tmp_path / "cache")
    (kept,) = kept_in(tmp_path / "cache")
    change_content(folder)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pinoise.data.images.decoding.decode", fail)
        with pytest.raises(KeyboardInterrupt):
            arrays(folder, tmp_path / "cache")
    assert kept_in(tmp_path / "cache") == [kept]  # of the images before the change, for which it is never taken
    expected = read_image_folder(folder, ReadOptions()).train.x[:]
    np.testing.assert_array_equal(arrays(folder, tmp_path / "cache")[0], expected)


def test_an_image_that_changes_while_it_is_decoded_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checksums = ImageFiles.file_checksums

    def change_meanwhile(images: ImageFiles) -> Any:
        found = list(checksums(images))
        change_content(folder)
        return iter(found)

    monkeypatch.setattr(ImageFiles, "file_checksums", change_meanwhile)
    with pytest.raises(UserError, match=r"1\.png has changed while it was used"):
        arrays(folder, tmp_path / "cache")
    assert kept_in(tmp_path / "cache") == []


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
def test_others_may_read_what_is_kept(folder: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        arrays(folder, tmp_path / "cache")
    finally:
        os.umask(before)
    (kept,) = kept_in(tmp_path / "cache")
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.iterdir()} == {0o644}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o755


def test_a_place_that_cannot_be_written_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(UserError, match=r"cache cannot be written \(.*\): make room, or choose another folder \(data"):
        arrays(folder, tmp_path / "cache")


def test_a_disk_without_room_is_one_sentence_before_anything_is_decoded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.data.disk.shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    monkeypatch.setattr("pinoise.data.images.decoding.decode", None)
    with pytest.raises(
        UserError, match=r"cache has 0\.0 GB free, but decoded images take 0\.0 GB: choose another folder"
    ):
        arrays(folder, tmp_path / "cache")
    assert kept_in(tmp_path / "cache") == []


# Reads a folder with a cache, and lets the other decide when its first image is decoded.
READER = """
import sys
from pathlib import Path
import pinoise.data.images.decoding as files
from pinoise.data.options import ReadOptions
from pinoise.data.images.reading import read_image_folder

decode, began = files.decode, []

def decode_when_allowed(path, **how):
    if not began:
        began.append(True)
        print("decoding", flush=True)
        sys.stdin.readline()
    return decode(path, **how)

files.decode = decode_when_allowed
files.in_threads = lambda function, items: map(function, items)
content = read_image_folder(Path(sys.argv[1]), ReadOptions(cache=Path(sys.argv[2])), progress=True)
print(content.train.x[:].tobytes().hex(), content.notes)
"""


@pytest.mark.processes
def test_of_two_processes_one_decodes_and_the_other_waits_and_maps(folder: Path, tmp_path: Path) -> None:
    expected = np.asarray(read_image_folder(folder, ReadOptions()).train.x).tobytes().hex()
    command = [sys.executable, "-c", READER, str(folder), str(tmp_path / "cache")]
    pipe = subprocess.PIPE
    readers = []
    try:
        for _ in range(2):
            readers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
            if len(readers) == 1:
                assert readers[0].stdout is not None
                assert readers[0].stdout.readline() == "decoding\n"
        assert readers[1].stderr is not None
        said = readers[1].stderr.readline()
        assert said == f"waiting for another process, which decodes the images of {folder.resolve()}\n"
        first, _ = readers[0].communicate("go on\n", timeout=60)
        second, errors = readers[1].communicate(timeout=60)
    finally:
        for reader in readers:
            reader.kill()
    assert first == f"{expected} ()\n"
    assert second == f"{expected} ()\n"
    assert errors == ""  # not even the bar of a decoding
