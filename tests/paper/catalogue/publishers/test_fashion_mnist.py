from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set


def write(folder: Path, x: np.ndarray, y: np.ndarray) -> list[Path]:
    paths = []
    for side in ("train", "t10k"):
        for what, array in (("images-idx3", x), ("labels-idx1", y)):
            paths.append(folder / f"{side}-{what}-ubyte")
            header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            paths[-1].write_bytes(header + array.astype(np.uint8).tobytes())
    return paths


def test_the_four_files_and_the_prepared_one_give_the_same_data(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (10, 28, 28), dtype=np.uint8)
    y = np.arange(10)
    from_idx = read_set(entry("fashion_mnist"), write(tmp_path, x, y))
    np.savez(tmp_path / "a.npz", X_train=x, y_train=y, X_test=x, y_test=y)
    prepared = read_set(entry("fashion_mnist"), [tmp_path / "a.npz"])
    for data in (from_idx, prepared):
        assert data.test is not None
        assert (data.name, data.shape) == ("fashion_mnist", (28, 28))
        assert data.class_names is not None
        assert data.class_names[9] == "Ankle boot"
        for part in (data.train, data.test):
            np.testing.assert_array_equal(part.x, x)
            np.testing.assert_array_equal(np.asarray(part.y), y)


def test_labels_that_are_too_few_or_without_a_name_are_reported(tmp_path: Path) -> None:
    x = np.zeros((10, 28, 28), dtype=np.uint8)
    with pytest.raises(UserError, match="has 10 rows but 9 labels"):
        read_set(entry("fashion_mnist"), write(tmp_path, x, np.arange(9)))
    with pytest.raises(UserError, match="the label '10' has no entry among the 10 class names"):
        read_set(entry("fashion_mnist"), write(tmp_path, x, np.arange(1, 11)))
