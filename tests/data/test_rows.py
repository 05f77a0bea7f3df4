from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from pinoise.data import dataset
from pinoise.data.readers import read_file
from pinoise.data.rows import LazyRows, make_rows
from pinoise.data.standardizer import Scaling, Standardizer

RNG = np.random.default_rng(0)
X = np.where(RNG.random((200, 9)) < 0.4, RNG.normal(size=(200, 9)) + 1e3, 0.0).astype(np.float32)
ORDER = torch.tensor([7, 0, 199, 7, 31])
VECTOR_SCALINGS: list[Scaling] = ["auto", "features", "global", "rows"]


def mapped(x: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scaling", VECTOR_SCALINGS)
def test_memory_a_mapped_file_and_a_sparse_matrix_agree_to_the_bit(
    scaling: Scaling, dtype: torch.dtype, tmp_path: Path
) -> None:
    standardizer = Standardizer.fit(X, scaling=scaling)
    dense = make_rows(X, standardizer, dtype=dtype)
    on_disk = make_rows(mapped(X, tmp_path), standardizer, dtype=dtype)
    sparse = make_rows(sp.csr_array(X), standardizer, dtype=dtype)
    assert type(dense) is torch.Tensor
    assert type(on_disk) is type(sparse) is LazyRows
    everything = torch.arange(len(X))
    for other in (on_disk, sparse):
        assert len(other) == len(dense) == 200
        assert torch.equal(other[everything], dense[everything])
        assert torch.equal(other[ORDER], dense[ORDER])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("source", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("scaling", VECTOR_SCALINGS)
def test_rows_come_in_the_order_asked_for_and_in_the_type_asked_for(
    scaling: Scaling, source: str, dtype: torch.dtype
) -> None:
    x = RNG.integers(0, 255, (200, 4, 3)).astype(source)
    standardizer = Standardizer.fit(x, scaling=scaling)
    batch = make_rows(x, standardizer, dtype=dtype)[ORDER]
    assert batch.dtype == dtype
    assert batch.shape == (5, 4, 3)
    expected = standardizer.apply(x[ORDER.numpy()].astype(np.float64))
    np.testing.assert_allclose(batch.numpy(), expected, atol=1e-6 if dtype == torch.float32 else 1e-13)


def test_dead_features_are_zero_in_later_rows() -> None:
    standardizer = Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    for later in (np.array([[2.0, 9.0]]), sp.csr_array(np.array([[2.0, 9.0]]))):
        assert make_rows(later, standardizer)[torch.tensor([0])].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("scaling", VECTOR_SCALINGS)
def test_rows_standardised_in_chunks_are_the_same(scaling: Scaling, monkeypatch: pytest.MonkeyPatch) -> None:
    standardizer = Standardizer.fit(X, scaling=scaling)
    whole = make_rows(X, standardizer)[torch.arange(200)]
    monkeypatch.setattr(dataset, "CHUNK_VALUES", 9 * 7)
    assert torch.equal(make_rows(X, standardizer)[torch.arange(200)], whole)


@pytest.mark.parametrize("scaling", VECTOR_SCALINGS)
def test_the_samples_given_are_not_changed(scaling: Scaling) -> None:
    x = X.astype(np.float64)
    for given in (x, sp.csr_array(x)):
        make_rows(given, Standardizer.fit(x, scaling=scaling), dtype=torch.float64)[ORDER]
    np.testing.assert_array_equal(x, X)


def test_choosing_a_scaling_changes_no_sample() -> None:
    for shift in (0, -9):  # counts of one kind, or a table
        x = np.where(np.random.default_rng(0).random((50, 40)) < 0.05, 9.0 + shift * np.arange(40), 0)
        before = x.copy()
        Standardizer.fit(x)
        np.testing.assert_array_equal(x, before)


def test_samples_in_memory_are_copied_once_and_not_kept() -> None:
    x = X.copy()
    gone = weakref.ref(x)
    rows = make_rows(x, Standardizer.fit(X))
    before = rows[ORDER]
    del x
    assert gone() is None
    assert torch.equal(rows[ORDER], before)


def test_times_in_seconds_stay_apart(tmp_path: Path) -> None:
    lines = [f"{1_700_000_000 + 3 * row},{row % 7}" for row in range(500)]
    (tmp_path / "times.csv").write_text("\n".join(["time,value", *lines]) + "\n")
    x = read_file(tmp_path / "times.csv")[0].train.x
    standard = make_rows(x, Standardizer.fit(x))[torch.arange(500)][:, 0]
    assert len(standard.unique()) == 500
    even = (np.arange(500) - 249.5) / np.arange(500).std()
    np.testing.assert_allclose(standard.numpy(), even, atol=1e-6)


def test_a_row_of_zeros_is_only_centred_where_rows_are_scaled() -> None:
    x = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])
    standardizer = Standardizer.fit(x, scaling="rows")
    expected = -standardizer.mean / standardizer.scale
    for given in (x, sp.csr_array(x)):
        zeros = make_rows(given, standardizer, dtype=torch.float64)[torch.tensor([2])]
        np.testing.assert_allclose(zeros.numpy(), [expected], rtol=1e-15)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (3, 5, 4)])
def test_images_are_kept_in_bytes_and_come_with_channels_first(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = RNG.integers(0, 256, size=(20, *shape)).astype(np.uint8)
    standardizer = Standardizer.fit(x, scaling="channels")
    rows = torch.tensor([3, 0, 19])
    for images in (x, mapped(x, tmp_path)):
        got = make_rows(images, standardizer)[rows]
        np.testing.assert_allclose(got.numpy(), standardizer.apply(x)[rows.numpy()], atol=1e-5)
