from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images.decoding import ImageFiles
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import preparation_from_json
from pinoise.data.readers import read_file
from pinoise.errors import UserError


def save(path: Path, *shape: int, seed: int = 0) -> Any:
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.fixture
def training(tmp_path: Path) -> Path:
    for seed, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png"]):
        save(tmp_path / "training" / name, 8, 6, 3, seed=seed)
    return tmp_path / "training"


def again(preparation: Any) -> Any:
    return preparation_from_json(json.loads(json.dumps(preparation.to_json())))


def test_a_later_folder_is_read_with_the_size_colour_and_classes_of_training(training: Path, tmp_path: Path) -> None:
    data, preparation = read_file(training, ReadOptions(size=4))
    assert data.shape == (4, 4, 3)
    assert np.asarray(data.train.y).tolist() == [0, 0, 1]
    save(tmp_path / "later/dog/x.png", 20, 10)
    later = again(preparation).read(tmp_path / "later")
    assert isinstance(later.train.x, ImageFiles)
    assert later.train.x.shape == (1, 4, 4, 3)
    assert np.asarray(later.train.y).tolist() == [1]
    assert later.class_names == ("cat", "dog")
    assert later.name == "later"
    assert preparation.read(tmp_path / "later", labelled=False).train.y is None

    save(tmp_path / "flat/x.png", 9, 9, 3)
    assert preparation.read(tmp_path / "flat").train.y is None


def test_a_later_folder_of_colour_becomes_gray_where_training_was(tmp_path: Path) -> None:
    for seed in range(2):
        save(tmp_path / f"training/{seed}.png", 4, 4, seed=seed)
    _, preparation = read_file(tmp_path / "training")
    save(tmp_path / "later/a.png", 4, 4, 3)
    assert preparation.read(tmp_path / "later").shape == (4, 4)


def test_later_images_are_brought_to_the_size_that_training_images_had(training: Path, tmp_path: Path) -> None:
    _, preparation = read_file(training)
    save(tmp_path / "later/x.png", 9, 9, 3)
    save(tmp_path / "later/y.png", 4, 5, 3)
    later = again(preparation).read(tmp_path / "later")
    assert later.train.x.shape == (2, 8, 6, 3)
    asked_for = read_file(tmp_path / "later", ReadOptions(size=(8, 6)))[0]
    np.testing.assert_array_equal(later.train.x[:2], asked_for.train.x[:2])


def test_classes_that_training_had_not_are_read(training: Path, tmp_path: Path) -> None:
    _, preparation = read_file(training)
    for seed, name in enumerate(["ant/x.png", "cow/y.png", "cat/z.png", "cow/w.png"]):
        save(tmp_path / "later" / name, 8, 6, 3, seed=seed)
    later = again(preparation).read(tmp_path / "later")
    assert later.class_names == ("ant", "cat", "cow")
    assert np.asarray(later.train.y).tolist() == [0, 1, 2, 2]
    assert later.train.names == ("ant/x.png", "cat/z.png", "cow/w.png", "cow/y.png")
    save(tmp_path / "known/dog/x.png", 8, 6, 3)
    known = preparation.read(tmp_path / "known")
    assert (known.class_names, np.asarray(known.train.y).tolist()) == (("cat", "dog"), [1])
    assert preparation.read(tmp_path / "later", labelled=False).train.y is None


def test_arrays_of_such_images_can_be_read_too(training: Path, tmp_path: Path) -> None:
    _, preparation = read_file(training)
    x = np.zeros((2, 8, 6, 3), np.uint8)
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(preparation.read(tmp_path / "x.npy").train.x, x)
    np.testing.assert_array_equal(preparation.read(x).train.x, x)
    with pytest.raises(UserError, match=r"shape \(8, 6\), but training had \(8, 6, 3\)"):
        preparation.read(x[..., 0])


def test_images_can_be_read_where_training_had_arrays_of_images(training: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 8, 6, 3), np.uint8))
    later = read_file(tmp_path / "x.npy")[1].read(training)
    assert later.train.x.shape == (3, 8, 6, 3)
    np.save(tmp_path / "v.npy", np.eye(3))
    with pytest.raises(UserError, match=r"is a folder of images, but training had an array of samples of shape \(3,\)"):
        read_file(tmp_path / "v.npy")[1].read(training)


def test_tables_and_images_are_not_taken_for_each_other(training: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,m\n1,2\n3,4\n")
    with pytest.raises(UserError, match=r"training is a folder of images, but training had a table"):
        read_file(tmp_path / "a.csv")[1].read(training)
    with pytest.raises(UserError, match=r"a\.csv is a table, but training had images of shape \(8, 6, 3\)"):
        read_file(training)[1].read(tmp_path / "a.csv")


def test_one_class_and_a_test_class_that_training_lacks_are_refused(training: Path, tmp_path: Path) -> None:
    save(tmp_path / "one/cat/a.png", 4, 4)
    with pytest.raises(UserError, match=r"one, labels: every label is 'cat', but classes need two or more"):
        read_file(tmp_path / "one")
    for name in ("train/cat/a.png", "train/dog/b.png", "val/images/c.png"):
        save(tmp_path / "split" / name, 4, 4)
    with pytest.raises(UserError, match=r"the test part has the class folder 'images', which training does not have"):
        read_file(tmp_path / "split")
