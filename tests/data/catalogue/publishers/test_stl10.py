from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pinoise.data import load
from pinoise.data.catalogue import facts, locate
from pinoise.data.lazy import FileRows


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
        for name in ("stl10", "stl10_unlabeled"):  # no archive made here can have the publisher's checksum
            chosen = facts.entry(name)
            files = tuple(replace(file, sha256=None) for file in chosen.files)
            monkeypatch.setitem(facts._entries(), name, replace(chosen, files=files))
    cache = tmp_path / "cache"
    assert locate("stl10", cache=cache) == locate("stl10_unlabeled", cache=cache)
    data = load("stl10", cache=cache, download=False)
    assert data.test is not None
    for part, rows in ((data.train, 4), (data.test, 3)):
        assert isinstance(part.x, FileRows)
        assert part.x.shape == (rows, 96, 96, 3)
    assert np.asarray(data.train.y).tolist() == [0, 9, 2, 0]
    assert data.class_names is not None
    assert data.class_names[9] == "class9"
    assert (cache / "unpacked/stl10_binary/train_X.bin").is_file() == packed
    assert not (cache / "unpacked/stl10_binary/unlabeled_X.bin").exists()

    more = load("stl10_unlabeled", cache=cache, download=False)
    assert isinstance(more.train.x, FileRows)
    assert (len(more.train), more.train.y, more.test) == (5, None, None)
    assert more.notes == ("the labelled images are not among these: they are the set stl10",)
