from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.data.dataset import Part
from pinoise.data.formats.arrays import read_npy
from pinoise.data.lazy import FileRows, MappedRows
from pinoise.data.rows import LazyRows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError

CHOSEN = np.array([7, 1, 1, 9, 0, 4])


@pytest.fixture(params=[(6, 5), (6, 5, 3)], ids=["gray", "rgb"])
def pixels(request: pytest.FixtureRequest) -> Any:
    return np.random.default_rng(0).integers(0, 256, (12, *request.param), dtype=np.uint8)


@pytest.fixture
def mapped(pixels: Any, tmp_path: Path) -> Any:
    np.save(tmp_path / "x.npy", pixels)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(1, 5, 2),
        slice(3, 3),
        2,
        -1,
        np.array([5, 0, 0]),
        np.array([-1, 2]),
        np.array([[1, 2], [3, 4]]),
        np.array([], dtype=np.int64),
        np.arange(6) % 2 == 0,
        [2, 5],
    ],
    ids=str,
)
def test_indexing_gives_what_an_array_of_these_rows_gives(rows: Any, mapped: Any, pixels: Any) -> None:
    lazy = MappedRows(mapped).take(CHOSEN)
    expected = pixels[CHOSEN]
    assert (lazy.shape, lazy.dtype, lazy.ndim, len(lazy)) == (expected.shape, expected.dtype, expected.ndim, 6)
    assert type(lazy[rows]) is np.ndarray
    np.testing.assert_array_equal(lazy[rows], expected[rows])
    np.testing.assert_array_equal(np.asarray(lazy), expected)


def test_rows_of_rows_are_taken_and_one_too_many_is_an_error(mapped: Any, pixels: Any) -> None:
    taken = MappedRows(mapped).take(CHOSEN).take(np.array([5, 0]))
    np.testing.assert_array_equal(taken[:], pixels[[4, 7]])
    for wrong in (12, -13):
        with pytest.raises(IndexError):
            MappedRows(mapped).take(np.array([wrong]))
    for beyond in (2, np.array([0, 2])):
        with pytest.raises(IndexError):
            taken[beyond]


@pytest.mark.parametrize("scaling", ["features", "channels", "rows"])
def test_batches_of_mapped_rows_are_those_of_an_array(scaling: Any, mapped: Any, pixels: Any) -> None:
    lazy = MappedRows(mapped).take(CHOSEN)
    standardizer = Standardizer.fit(lazy, scaling=scaling)
    expected = Standardizer.fit(pixels[CHOSEN], scaling=scaling)
    np.testing.assert_array_equal(standardizer.mean, expected.mean)
    np.testing.assert_array_equal(standardizer.scale, expected.scale)
    rows = make_rows(lazy, standardizer)
    assert isinstance(rows, LazyRows)
    some = torch.tensor([3, 0, 5])
    assert torch.equal(rows[some], make_rows(pixels[CHOSEN], expected)[some])


def test_rows_of_a_mapped_table_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(4))
    taken = Part(np.load(tmp_path / "x.npy", mmap_mode="r")).take(np.array([2, 0])).x
    assert type(taken) is np.ndarray
    assert taken.argmax(axis=1).tolist() == [2, 0]


def test_rows_listed_in_four_bytes_are_found_beyond_two_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with path.open("wb") as file:  # a sparse file: it takes no room on the disk
        file.seek(3 * 2**30 - 8)
        file.write(b"the last")
    rows = FileRows(path, (3 * 2**20, 1024), np.dtype(np.uint8)).take(np.array([3 * 2**20 - 1], dtype=np.int32))
    assert rows[0][-8:].tobytes() == b"the last"


def test_a_file_that_is_written_to_while_it_is_used_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(40.0).reshape(10, 4))
    rows: Any = read_npy(path).train.x
    chosen = rows.take(CHOSEN)
    assert chosen[0].tolist() == [28, 29, 30, 31]
    with path.open("r+b") as file:
        file.seek(-8, 2)
        file.write(b"changed!")
    for array in (rows, chosen):
        with pytest.raises(UserError, match=r"x\.npy has changed while it was used: restore it"):
            array[0]
    again: Any = read_npy(path).train.x
    assert again[0].tolist() == [0, 1, 2, 3]  # for whoever begins now


def test_a_file_that_another_replaces_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "x.npy", tmp_path / "y.npy"
    for place, first in ((path, 0.0), (other, 100.0)):
        np.save(place, first + np.arange(40.0).reshape(10, 4))
    rows: Any = read_npy(path).train.x
    other.replace(path)
    with pytest.raises(UserError, match=r"x\.npy has changed while it was used"):
        rows[0]
