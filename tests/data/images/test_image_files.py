from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.checks import check_finite, numeric_samples
from pinoise.data.dataset import fingerprint, row_slices, varies
from pinoise.data.images.decoding import ImageFiles
from pinoise.errors import UserError

SHAPES = [(6, 5), (6, 5, 3)]


@pytest.fixture(params=SHAPES, ids=["gray", "rgb"])
def images(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ImageFiles, Any]:
    pixels = np.random.default_rng(0).integers(0, 256, (12, *request.param), dtype=np.uint8)
    for row, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{row:02}.png")
    return ImageFiles(tmp_path, [f"{row:02}.png" for row in range(12)], shape=request.param), pixels


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(3, 9, 2),
        slice(5, 5),
        4,
        -1,
        np.int64(3),
        np.array([7, 0, 0, 11]),
        np.array([-1, 2]),
        np.array([], dtype=np.int64),
        np.arange(12) % 3 == 0,
        np.array([[1, 2], [3, 4]]),
        [2, 5],
    ],
    ids=str,
)
def test_indexing_gives_what_an_array_gives(rows: Any, images: tuple[ImageFiles, Any]) -> None:
    files, pixels = images
    found = files[rows]
    assert type(found) is np.ndarray
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, pixels[rows])


def test_it_describes_itself_as_an_array(images: tuple[ImageFiles, Any]) -> None:
    files, pixels = images
    assert (files.shape, files.dtype, files.ndim, len(files)) == (pixels.shape, pixels.dtype, pixels.ndim, 12)
    np.testing.assert_array_equal(np.asarray(files), pixels)
    np.testing.assert_array_equal(np.asarray(files, dtype=np.float32), pixels.astype(np.float32))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(files))[:], pixels)
    for beyond in (12, np.array([0, 12])):
        with pytest.raises(IndexError):
            files[beyond]


def test_checks_are_those_of_the_pixels_and_the_fingerprint_that_of_the_files(images: tuple[ImageFiles, Any]) -> None:
    files, _ = images
    assert numeric_samples(files, where="a") is files
    check_finite(files)
    assert varies(files)
    assert not varies(files.take(np.array([3, 3, 3])))
    before = fingerprint(files)
    assert before == fingerprint(files.take(np.arange(12)))
    assert before != fingerprint(files.take(np.arange(11)))
    assert before != fingerprint(files.take(np.arange(12)[::-1]))
    path = files.folder / files.names[7]
    path.write_bytes(path.read_bytes() + b" ")
    assert before != fingerprint(files)
    assert list(row_slices(files)) == [slice(0, 12)]


def test_a_file_that_vanishes_or_changes_is_named(images: tuple[ImageFiles, Any], tmp_path: Path) -> None:
    files, _ = images
    (tmp_path / "05.png").unlink()
    with pytest.raises(UserError, match=r"05\.png cannot be decoded \(No such file or directory\)"):
        files[4:6]
    Image.new("L", (3, 3)).save(tmp_path / "05.png")
    with pytest.raises(UserError, match=r"05\.png is 3 × 3 pixels: the others are 6 × 5"):
        files[4:6]
