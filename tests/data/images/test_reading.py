from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images.decoding import ImageFiles
from pinoise.data.images.reading import read_image_folder
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError


def save(path: Path, *shape: int, seed: int = 0) -> Any:
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


def test_classes_and_split_become_labels_and_parts(tmp_path: Path) -> None:
    expected = {
        name: save(tmp_path / name, 4, 5, 3, seed=seed)
        for seed, name in enumerate(["train/cat/0.png", "train/cat/1.png", "train/dog/2.png", "test/dog/3.png"])
    }
    content = read_image_folder(tmp_path, ReadOptions())
    raw = content
    assert raw.test is not None
    assert isinstance(raw.train.x, ImageFiles)
    np.testing.assert_array_equal(raw.train.x[:], np.stack([expected[name] for name in raw.train.x.names]))
    assert np.asarray(raw.train.y).tolist() == ["cat", "cat", "dog"]
    np.testing.assert_array_equal(raw.test.x[:], expected["test/dog/3.png"][None])
    assert np.asarray(raw.test.y).tolist() == ["dog"]
    assert content.notes == ()


def test_images_of_different_sizes_are_refused_with_both_and_taken_with_a_size(tmp_path: Path) -> None:
    save(tmp_path / "a.png", 4, 5)
    save(tmp_path / "b.png", 4, 5)
    save(tmp_path / "c.png", 9, 6)
    message = r"sizes: a\.png is 4 × 5 and c\.png is 9 × 6 \(height × width\); bring all to one with --set data.size=64"
    with pytest.raises(UserError, match=message):
        read_image_folder(tmp_path, ReadOptions())
    assert read_image_folder(tmp_path, ReadOptions(size=(3, 2))).train.x.shape == (3, 3, 2)


def test_colour_is_had_where_any_image_has_it_or_as_the_user_says(tmp_path: Path) -> None:
    gray = save(tmp_path / "a.png", 4, 4)
    assert read_image_folder(tmp_path, ReadOptions()).train.x.shape == (1, 4, 4)
    assert read_image_folder(tmp_path, ReadOptions(color="rgb")).train.x.shape == (1, 4, 4, 3)
    save(tmp_path / "b.png", 4, 4, 3)
    x = read_image_folder(tmp_path, ReadOptions()).train.x
    assert x.shape == (2, 4, 4, 3)
    np.testing.assert_array_equal(x[0], np.repeat(gray[..., None], 3, axis=2))
    assert read_image_folder(tmp_path, ReadOptions(color="gray")).train.x.shape == (2, 4, 4)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    for seed, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png", "dog/d.png"]):
        save(tmp_path / name, 6, 6, 3, seed=seed)
    (tmp_path / "cat/b.png").write_bytes((tmp_path / "cat/b.png").read_bytes()[:60])
    (tmp_path / "dog/c.png").write_bytes(b"no image at all")
    return tmp_path


def test_corrupt_files_are_refused_by_name(damaged: Path) -> None:
    sentence = r"cat.b\.png cannot be decoded \(.*\): .* corrupt='skip' \(--set data.corrupt=skip\)"
    with pytest.raises(UserError, match=sentence):
        read_image_folder(damaged, ReadOptions())


def test_corrupt_files_are_left_out_with_a_note(damaged: Path) -> None:
    content = read_image_folder(damaged, ReadOptions(corrupt="skip"))
    assert content.train.x.shape == (2, 6, 6, 3)
    assert np.asarray(content.train.y).tolist() == ["cat", "dog"]
    assert content.notes[0].startswith("left out 2 corrupt images (")
    assert content.notes[0].endswith("): cat/b.png, dog/c.png")
    assert content.train.names == ("cat/a.png", "dog/d.png")


def test_a_class_or_a_folder_of_corrupt_files_only_is_refused(damaged: Path, tmp_path: Path) -> None:
    (damaged / "dog/d.png").unlink()
    with pytest.raises(UserError, match=r"every image of the class 'dog' is corrupt"):
        read_image_folder(damaged, ReadOptions(corrupt="skip"))
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "a.jpg").write_bytes(b"x")
    with pytest.raises(
        UserError, match=r"every image is corrupt, a\.jpg for one \(it is not an image of a known format\)"
    ):
        read_image_folder(flat, ReadOptions(corrupt="skip"))
