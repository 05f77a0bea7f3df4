from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pinoise.data import ReadOptions, open_source, read_file
from pinoise.data.lazy import LazyArray
from pinoise.experiments.sources import open_compared
from pinoise.paper.catalogue import facts, locate
from pinoise.paper.catalogue.loading import load


def write_stl10(folder: Path) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for side, rows in (("train", 4), ("test", 3), ("unlabeled", 5)):
        rng.integers(0, 256, rows * 27648, dtype=np.uint8).tofile(folder / f"{side}_X.bin")
    (folder / "train_y.bin").write_bytes(bytes([1, 10, 3, 1]))
    (folder / "test_y.bin").write_bytes(bytes([3, 10, 10]))
    (folder / "class_names.txt").write_text("".join(f"class{number}\n" for number in range(10)))


@pytest.mark.parametrize("packed", [False, True])
def test_labelled_and_unlabelled_images_are_two_sets_of_one_archive_and_are_mapped(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    write_stl10(tmp_path / ("written" if packed else "stl10_binary"))
    if packed:
        with tarfile.open(tmp_path / "stl10_binary.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / "written", arcname="stl10_binary")
        for name in ("stl10", "stl10_unlabeled", "stl10_all"):  # no archive made here can have the publisher's checksum
            chosen = facts.entry(name)
            files = tuple(replace(file, sha256=None) for file in chosen.files)
            monkeypatch.setitem(facts._entries(), name, replace(chosen, files=files))
    cache = tmp_path / "cache"
    assert locate("stl10", cache=cache) == locate("stl10_unlabeled", cache=cache)
    data = load("stl10", cache=cache, download=False)
    assert data.test is not None
    for part, rows in ((data.train, 4), (data.test, 3)):
        assert isinstance(part.x, LazyArray)
        assert part.x.shape == (rows, 96, 96, 3)
    assert np.asarray(data.train.y).tolist() == [0, 9, 2, 0]
    assert data.class_names is not None
    assert data.class_names[9] == "class9"
    assert len(list(cache.glob("unpacked/*/train_X.bin"))) == packed
    assert not list(cache.glob("unpacked/*/unlabeled_X.bin"))

    more = load("stl10_unlabeled", cache=cache, download=False)
    assert isinstance(more.train.x, LazyArray)
    assert (len(more.train), more.train.y, more.test) == (5, None, None)
    assert more.notes == ("the labelled images are not among these: they are the set stl10",)

    everything = load("stl10_all", cache=cache, download=False)
    assert len(list(cache.glob("unpacked/*/unlabeled_X.bin"))) == packed  # once for both sets that take it
    assert (everything.train.y, everything.test) == (None, None)
    labelled, unlabelled = np.asarray(data.train.x), np.asarray(more.train.x)
    assert np.array_equal(np.asarray(everything.train.x), np.concatenate([labelled, unlabelled]))
    some = np.asarray(everything.train.x[np.array([8, 3, 4])])
    assert np.array_equal(some, np.stack([unlabelled[4], labelled[3], unlabelled[0]]))
    assert everything.notes == ("labels are not read: score on the set stl10, whose test images are not among these",)


def test_images_are_brought_to_a_size_like_those_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    write_stl10(tmp_path / "stl10_binary")
    whole = load("stl10")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for row, pixels in enumerate(np.asarray(whole.train.x)):
        image.fromarray(pixels).save(folder / f"{row}.png")
    expected = np.asarray(read_file(folder, ReadOptions(size=32))[0].train.x)
    data, preparation = open_source("stl10", ReadOptions(size=32))
    assert data.shape == preparation.shape == (32, 32, 3)
    assert np.array_equal(np.asarray(data.train.x), expected)
    assert "images were brought from 96 × 96 to 32 × 32 pixels" in data.notes
    assert preparation.read("stl10_all").shape == (32, 32, 3)  # later data has the size of training
    (trained,) = open_compared(["stl10_all"], ReadOptions(size=32), score_on="stl10")
    assert (trained.shape, len(trained.train), trained.name) == ((32, 32, 3), 9, "stl10_all → stl10")
