from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.data import read_file
from pinoise.data.lazy import LazyArray
from pinoise.errors import UserError
from pinoise.paper.formats import holds_stl10, read_stl10, read_stl10_images


def stored(image: Any) -> bytes:
    """Pixels as the publisher stores them: channel by channel, and in each the columns one after the other."""
    return b"".join(image[:, column, channel].tobytes() for channel in range(3) for column in range(96))


def write_stl10(folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for side, rows in (("train", 4), ("test", 3), ("unlabeled", 5)):
        arrays[side] = rng.integers(0, 256, (rows, 96, 96, 3), dtype=np.uint8)
        (folder / f"{side}_X.bin").write_bytes(b"".join(map(stored, arrays[side])))
    arrays["y_train"], arrays["y_test"] = np.array([1, 10, 2, 1], np.uint8), np.array([2, 2, 10], np.uint8)
    arrays["y_train"].tofile(folder / "train_y.bin")
    arrays["y_test"].tofile(folder / "test_y.bin")
    (folder / "class_names.txt").write_text("".join(f"class{number}\n" for number in range(10)))
    (folder / "fold_indices.txt").write_text("0 1 2\n")
    return arrays


def test_labelled_images_are_mapped_upright_with_labels_from_zero(tmp_path: Path) -> None:
    arrays = write_stl10(tmp_path / "stl10_binary")
    assert holds_stl10(tmp_path / "stl10_binary")
    raw = read_stl10(tmp_path / "stl10_binary")
    assert raw.test is not None
    for part, side in ((raw.train, "train"), (raw.test, "test")):
        assert isinstance(part.x, LazyArray)
        assert part.x.shape == arrays[side].shape
        np.testing.assert_array_equal(part.x, arrays[side])
        np.testing.assert_array_equal(np.asarray(part.y), arrays[f"y_{side}"] - 1)
    assert raw.class_names == tuple(f"class{number}" for number in range(10))


@pytest.mark.parametrize("change", [-1, 1, -27648 * 4])
def test_a_file_of_another_length_is_reported_with_the_bytes(change: int, tmp_path: Path) -> None:
    write_stl10(tmp_path / "a")
    path = tmp_path / "a/train_X.bin"
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + bytes(change))
    rows = (len(content) + change) // 27648
    message = rf"train_X\.bin has {len(content) + change} bytes: an image takes 27648, so {rows * 27648} or"
    with pytest.raises(UserError, match=message):
        read_stl10(tmp_path / "a")


def test_labels_that_are_too_few_absent_or_zero_are_reported(tmp_path: Path) -> None:
    write_stl10(tmp_path / "a")
    labels = tmp_path / "a/train_y.bin"
    labels.write_bytes(b"\1\2\3")
    with pytest.raises(UserError, match=r"a has 4 rows but 3 labels"):
        read_file(tmp_path / "a")
    labels.write_bytes(b"\1\2\0\3")
    with pytest.raises(UserError, match=r"train_y\.bin has a label of 0 in row 2"):
        read_stl10(tmp_path / "a")
    labels.unlink()
    with pytest.raises(UserError, match=r"cannot read .*train_y\.bin: No such file"):
        read_stl10(tmp_path / "a")
    with pytest.raises(UserError, match=r"cannot read .*nothing\.bin"):
        read_stl10_images(tmp_path / "nothing.bin")
