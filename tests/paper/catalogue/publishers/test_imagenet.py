from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pinoise.data import load, read_file
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError

IMAGES = {
    "train/n01440764/n01440764_10026.JPEG": (120, 160),
    "train/n01440764/n01440764_18.JPEG": (96, 100),
    "train/n01443537/n01443537_2.JPEG": (200, 97),
    "val/n01440764/ILSVRC2012_val_00000293.JPEG": (130, 110),
    "val/n01443537/ILSVRC2012_val_00000236.JPEG": (100, 150),
}


def write(root: Path, images: dict[str, tuple[int, int]]) -> Path:
    image = pytest.importorskip("PIL.Image")
    for number, (name, (height, width)) in enumerate(images.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
        image.fromarray(pixels).save(root / name, format="JPEG")
    return root


def test_class_folders_are_read_at_96_pixels_or_at_the_size_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    write(tmp_path / "imagenet", IMAGES)
    for size, data in ((96, load("imagenet")), (24, load("imagenet", size=(24, 24)))):
        assert data.test is not None
        assert (len(data.train), len(data.test), data.shape) == (3, 2, (size, size, 3))
        assert data.class_names == ("n01440764", "n01443537")
        assert np.asarray(data.train.y).tolist() == [0, 0, 1]
        assert np.asarray(data.test.y).tolist() == [0, 1]
        expected = read_file(tmp_path / "imagenet", ReadOptions(size=size, color="rgb"))[0]
        assert np.array_equal(np.asarray(data.train.x), np.asarray(expected.train.x))


def test_validation_images_that_are_not_sorted_by_class_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    write(
        tmp_path / "imagenet",
        {name.replace("val/n01440764", "val").replace("val/n01443537", "val"): size for name, size in IMAGES.items()},
    )
    with pytest.raises(UserError, match="is not a folder with train and val, each with one folder for every class"):
        load("imagenet")


def test_without_the_folder_the_error_says_what_to_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    with pytest.raises(UserError, match="have a folder imagenet with train and val, each with one folder for every"):
        load("imagenet")
