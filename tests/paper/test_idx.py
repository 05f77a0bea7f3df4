from __future__ import annotations

import bz2
import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.formats import holds_idx, read_idx, read_idx_samples, read_idx_set

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array: Any) -> bytes:
    """The bytes of an array, value by value."""
    kind = array.dtype.str[1:]
    content = struct.pack(f">BBBB{array.ndim}I", 0, 0, CODES[kind], array.ndim, *array.shape)
    letter = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "f4": "f", "f8": "d"}[kind]
    return content + b"".join(struct.pack(f">{letter}", value) for value in array.ravel().tolist())


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("shape", [(5,), (3, 2), (2, 3, 4), (2, 1, 3, 2)])
def test_every_type_and_number_of_axes_comes_back(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 100, shape).astype(kind)
    (tmp_path / "a.idx").write_bytes(idx(array))
    found = read_idx(tmp_path / "a.idx")
    assert found.dtype == array.dtype
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_compressed_file_is_read_like_a_plain_one(pack: Any, tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a.gz").write_bytes(pack(idx(array)))
    np.testing.assert_array_equal(read_idx(tmp_path / "a.gz"), array)


@pytest.mark.parametrize(("change", "found"), [(-1, "23"), (-24, "0"), (1, "more"), (3_000_000, "more")])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_wrong_length_is_reported_with_expected_and_found_bytes(
    change: int, found: str, pack: Any, tmp_path: Path
) -> None:
    content = idx(np.zeros((2, 3, 4), dtype=np.uint8))
    content = content[:change] if change < 0 else content + bytes(change)
    (tmp_path / "a.idx").write_bytes(pack(content))
    state = "cut off" if change < 0 else "too long"
    message = rf"a\.idx is {state}: .* 2 × 3 × 4 values of type uint8, 24 bytes, but {found} were found"
    with pytest.raises(UserError, match=message):
        read_idx(tmp_path / "a.idx")


def test_a_header_that_promises_more_than_any_memory_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.idx").write_bytes(struct.pack(">BBBB3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1) + b"abc")
    with pytest.raises(UserError, match=r"a\.idx: the array takes \d+ GB of memory .* get the file again"):
        read_idx(tmp_path / "a.idx")


@pytest.mark.parametrize("start", [b"", b"\0\0\x08", b"\1\0\x08\1", b"\0\0\x07\1", b"\0\0\x08\0", b"PK\3\4abcdefgh"])
def test_another_beginning_is_not_an_idx_file(start: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.idx").write_bytes(start)
    with pytest.raises(UserError, match=r"a\.idx is not an IDX file: it begins with"):
        read_idx(tmp_path / "a.idx")


def write_set(folder: Path, *, mark: str = "-", packed: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    ending, pack = (".gz", gzip.compress) if packed else ("", bytes)
    arrays = []
    for side, rows in (("train", 6), ("t10k", 4)):
        x = rng.integers(0, 256, (rows, 5, 4), dtype=np.uint8)
        y = np.arange(rows, dtype=np.uint8) % 2
        (folder / f"{side}-images{mark}idx3-ubyte{ending}").write_bytes(pack(idx(x)))
        (folder / f"{side}-labels{mark}idx1-ubyte{ending}").write_bytes(pack(idx(y)))
        arrays.append((x, y))
    return arrays[0], arrays[1]


@pytest.mark.parametrize("mark", ["-", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_four_files_is_a_split_set(mark: str, packed: bool, tmp_path: Path) -> None:
    train, test = write_set(tmp_path, mark=mark, packed=packed)
    assert holds_idx(tmp_path)
    raw = read_idx_set(tmp_path)
    assert raw.test is not None
    for part, (x, y) in ((raw.train, train), (raw.test, test)):
        np.testing.assert_array_equal(np.asarray(part.x), x)
        np.testing.assert_array_equal(np.asarray(part.y), y)


def test_labels_come_from_the_file_beside_the_images_even_if_only_one_is_packed(tmp_path: Path) -> None:
    (x, y), _ = write_set(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels.read_bytes()))
    labels.unlink()
    raw = read_idx_samples(tmp_path / "train-images-idx3-ubyte")
    np.testing.assert_array_equal(np.asarray(raw.train.y), y)
    (tmp_path / "mine.idx").write_bytes(idx(x))
    assert read_idx_samples(tmp_path / "mine.idx").train.y is None


def test_a_folder_without_training_images_is_another_kind_of_folder(tmp_path: Path) -> None:
    assert not holds_idx(tmp_path)
