from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.formats import holds_cifar, read_cifar

RNG = np.random.default_rng(0)
NAMES10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def images(rows: int) -> Any:
    return RNG.integers(0, 256, (rows, 32, 32, 3), dtype=np.uint8)


def planes(image: Any) -> bytes:
    """Pixels as the publisher stores them: all reds row by row, then all greens, then all blues."""
    return b"".join(
        bytes(int(image[row, column, channel]) for row in range(32) for column in range(32)) for channel in range(3)
    )


def binary10(folder: Path) -> tuple[Any, Any, Any, Any]:
    folder.mkdir()
    x, y = images(10), RNG.integers(0, 10, 10)
    for batch in range(5):
        rows = range(2 * batch, 2 * batch + 2)
        content = b"".join(bytes([int(y[row])]) + planes(x[row]) for row in rows)
        (folder / f"data_batch_{batch + 1}.bin").write_bytes(content)
    x_test, y_test = images(3), np.array([9, 0, 4])
    content = b"".join(bytes([int(label)]) + planes(image) for image, label in zip(x_test, y_test, strict=True))
    (folder / "test_batch.bin").write_bytes(content)
    (folder / "batches.meta.txt").write_text("\n".join(NAMES10) + "\n\n")
    (folder / "readme.html").write_text("<html>")
    return x, y, x_test, y_test


def binary100(folder: Path) -> tuple[Any, Any, Any, Any]:
    folder.mkdir()
    sets = []
    for side, rows in (("train", 6), ("test", 2)):
        x, coarse, fine = images(rows), RNG.integers(0, 20, rows), RNG.integers(0, 100, rows)
        content = b"".join(bytes([int(c), int(f)]) + planes(i) for c, f, i in zip(coarse, fine, x, strict=True))
        (folder / f"{side}.bin").write_bytes(content)
        sets += [x, fine]
    (folder / "fine_label_names.txt").write_text("".join(f"thing_{number}\n" for number in range(100)))
    (folder / "coarse_label_names.txt").write_text("".join(f"kind_{number}\n" for number in range(20)))
    return sets[0], sets[1], sets[2], sets[3]


def pack(folder: Path) -> Path:
    path = folder.with_name(folder.name + ".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    return path


WRITERS = [binary10, binary100]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_version_comes_back_from_its_folder_and_from_its_archive(
    write: Any, packed: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    x, y, x_test, y_test = write(folder)
    assert holds_cifar(folder)
    raw = read_cifar(pack(folder) if packed else folder)
    assert raw.test is not None
    np.testing.assert_array_equal(np.asarray(raw.train.x), x)
    np.testing.assert_array_equal(np.asarray(raw.train.y), y)
    np.testing.assert_array_equal(np.asarray(raw.test.x), x_test)
    np.testing.assert_array_equal(np.asarray(raw.test.y), y_test)
    assert raw.class_names is not None
    assert len(raw.class_names) == (10 if write is binary10 else 100)
    assert raw.class_names[3] in ("cat", "thing_3")


@pytest.mark.parametrize(
    ("file", "size", "message"),
    [
        ("data_batch_3.bin", 6145, r"data_batch_3\.bin has 6145 bytes: an image takes 3073, so 3073 or 6146"),
        ("test_batch.bin", 9220, r"test_batch\.bin has 9220 bytes: an image takes 3073, so 9219 or 12292"),
        ("test_batch.bin", 0, r"test_batch\.bin has 0 bytes"),
    ],
)
def test_a_cut_or_overlong_file_is_reported_with_the_bytes(file: str, size: int, message: str, tmp_path: Path) -> None:
    binary10(tmp_path / "set")
    path = tmp_path / "set" / file
    path.write_bytes((path.read_bytes() + bytes(10))[:size])
    with pytest.raises(UserError, match=message):
        read_cifar(tmp_path / "set")


def test_a_missing_batch_and_a_strange_folder_are_named(tmp_path: Path) -> None:
    binary10(tmp_path / "set")
    (tmp_path / "set/data_batch_4.bin").unlink()
    with pytest.raises(UserError, match=r"set lacks data_batch_4\.bin: get the whole set"):
        read_cifar(tmp_path / "set")
    (tmp_path / "empty").mkdir()
    assert not holds_cifar(tmp_path / "empty")
    with pytest.raises(UserError, match=r"empty holds no file of CIFAR: get the binary version"):
        read_cifar(tmp_path / "empty")


@pytest.mark.parametrize(("file", "names"), [("data_batch_1", "batches.meta"), ("train", "meta")])
@pytest.mark.parametrize("packed", [False, True])
def test_the_python_version_is_refused_and_the_binary_version_named(
    file: str, names: str, packed: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / file).write_bytes(b"cos\nsystem\n(S'echo no'\ntR.")
    (folder / names).write_bytes(b"")
    assert holds_cifar(folder)
    with pytest.raises(UserError, match=r"is the python version of CIFAR, .*: get the binary version"):
        read_cifar(pack(folder) if packed else folder)
