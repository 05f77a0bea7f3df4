from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images.cache import KeptImages
from pinoise.data.images.decoding import ImageFiles
from pinoise.data.images.reading import read_image_folder
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError
from pinoise.files import read_sealed, write_sealed


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


def test_the_first_reading_decodes_and_later_ones_map(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = read_image_folder(folder, ReadOptions())
    assert plain.test is not None
    first = arrays(folder, tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr("pinoise.data.images.decoding.decode", None)
        patch.setattr("pinoise.data.images.inspection.inspect_image", None)
        second = read_image_folder(folder, ReadOptions(cache=tmp_path / "cache"))
    assert second.test is not None
    assert second.notes == (f"read from the decoded images kept in {tmp_path / 'cache'}",)
    assert np.asarray(second.train.y).tolist() == ["a", "a", "b"]
    for x in (first[0], second.train.x):
        assert isinstance(x, KeptImages)
        np.testing.assert_array_equal(x, plain.train.x[:])
    for x in (first[1], second.test.x):
        np.testing.assert_array_equal(x, plain.test.x[:])
    endings = sorted(path.name.split(".", 1)[1] for path in (tmp_path / "cache").iterdir())
    assert endings == ["0.npy", "1.npy", "json", "lock"]


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
    assert len(list((tmp_path / "cache").iterdir())) == 4


def test_each_choice_of_options_has_its_own_arrays(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert arrays(folder, cache)[0].shape == (3, 5, 4, 3)
    assert arrays(folder, cache, ReadOptions(size=2))[0].shape == (3, 2, 2, 3)
    assert arrays(folder, cache, ReadOptions(color="gray"))[0].shape == (3, 5, 4)
    assert arrays(folder, cache)[0].shape == (3, 5, 4, 3)
    assert len(list(cache.iterdir())) == 12


def cut_json(path: Path) -> None:
    path.write_text(path.read_text()[:30])


def other_json(path: Path) -> None:
    path.write_text("[1, 2]")


def without_notes(path: Path) -> None:
    about = read_sealed(path)
    del about["notes"]
    write_sealed(path, about)


def other_skipped(path: Path) -> None:
    path.write_text(path.read_text().replace('"skipped": []', '"skipped": ["train/a/0.png"]'))


def other_pixel(path: Path) -> None:
    array = path.with_name(path.name.replace(".json", ".0.npy"))
    content = bytearray(array.read_bytes())
    content[-1] ^= 1
    array.write_bytes(bytes(content))


def cut_array(path: Path) -> None:
    array = path.with_name(path.name.replace(".json", ".0.npy"))
    array.write_bytes(array.read_bytes()[:-5])


def no_array(path: Path) -> None:
    path.with_name(path.name.replace(".json", ".1.npy")).unlink()


def other_shape(path: Path) -> None:
    np.save(path.with_name(path.name.replace(".json", ".0.npy")), np.zeros((2, 5, 4, 3), np.uint8))


@pytest.mark.parametrize(
    "damage", [cut_json, other_json, without_notes, other_skipped, other_pixel, cut_array, no_array, other_shape]
)
def test_a_damaged_cache_is_made_again(damage: Any, folder: Path, tmp_path: Path) -> None:
    expected = np.array(arrays(folder, tmp_path / "cache")[0])
    (path,) = (tmp_path / "cache").glob("*.json")
    damage(path)
    np.testing.assert_array_equal(arrays(folder, tmp_path / "cache")[0], expected)


def test_a_reading_that_breaks_off_leaves_no_arrays_that_could_be_believed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays(folder, tmp_path / "cache")
    change_content(folder)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pinoise.data.images.decoding.decode", fail)
        with pytest.raises(KeyboardInterrupt):
            arrays(folder, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.json"))
    assert not list((tmp_path / "cache").glob("*.part"))


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
def test_others_may_read_what_is_kept(folder: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        arrays(folder, tmp_path / "cache")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache").iterdir()} == {0o644}


def test_a_place_that_cannot_be_written_is_an_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    sentence = r"cannot keep decoded images in .*cache \(.*\): choose another folder for the cache \(--set data.cache="
    with pytest.raises(UserError, match=sentence):
        arrays(folder, tmp_path / "cache")


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
    assert second == f"{expected} ('read from the decoded images kept in {tmp_path / 'cache'}',)\n"
    assert errors == ""  # not even the bar of a decoding
