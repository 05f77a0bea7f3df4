from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import StandardScaler

from pinoise.data import dataset
from pinoise.data.standardizer import Standardizer

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_agrees_with_scikit_learn_even_far_from_zero(dtype: str, offset: float) -> None:
    x = (RNG.normal(size=(3000, 7)) * np.logspace(-1, 3, 7) + offset).astype(dtype)
    reference = StandardScaler().fit(x.astype(np.float64))
    found = Standardizer.fit(x)
    np.testing.assert_allclose(found.mean, reference.mean_, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.scale, reference.scale_, rtol=1e-9)
    np.testing.assert_allclose(found.apply(x), reference.transform(x.astype(np.float64)), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_and_dense_samples_teach_the_same(dtype: str) -> None:
    dense = np.where(RNG.random((20_000, 5)) < 0.3, RNG.normal(size=(20_000, 5)) + 1e4, 0.0).astype(dtype)
    dense[:, 3] = 0.0
    dense[:, 4] = 7.0
    sparse = sp.csr_array(dense)
    before = sparse.copy()
    one, other = Standardizer.fit(dense), Standardizer.fit(sparse)
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-12)
    np.testing.assert_allclose(other.scale, one.scale, rtol=1e-10)
    assert other.live.tolist() == one.live.tolist() == [True, True, True, False, False]
    np.testing.assert_array_equal(sparse.toarray(), before.toarray())


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.3e7, 1e-30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_constant_feature_is_dead_and_stays_zero(constant: float, dtype: str) -> None:
    x = np.column_stack([np.full(10_001, constant), np.arange(10_001)]).astype(dtype)
    found = Standardizer.fit(x)
    assert found.live.tolist() == [False, True]
    assert found.scale[0] == 0.0
    later = x[:3] + np.array([5, 0])
    assert found.apply(later)[:, 0].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found.undo(found.apply(x)), x, rtol=1e-6)


def test_a_feature_that_is_zero_but_once_is_live() -> None:
    x = np.zeros((1000, 1))
    x[500] = 1e-12
    assert Standardizer.fit(x).live.tolist() == [True]


@pytest.mark.parametrize("shape", [(6,), (4, 3), (5, 4, 3), (3, 2, 2, 2)])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_samples_of_any_rank_and_type_are_standardised_feature_by_feature(shape: tuple[int, ...], dtype: str) -> None:
    x = RNG.integers(0, 255, (50, *shape)).astype(dtype)
    found = Standardizer.fit(x)
    assert found.shape == shape
    reference = StandardScaler().fit_transform(x.reshape(50, -1).astype(np.float64))
    np.testing.assert_allclose(found.apply(x).reshape(50, -1), reference, atol=1e-10)


def test_chunks_of_a_mapped_file_give_what_the_whole_array_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = (RNG.normal(size=(1003, 6)) + 1e6).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    whole = Standardizer.fit(x)
    monkeypatch.setattr(dataset, "CHUNK_VALUES", 6 * 100)
    chunked = Standardizer.fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    np.testing.assert_allclose(chunked.mean, whole.mean, rtol=1e-14)
    np.testing.assert_allclose(chunked.scale, whole.scale, rtol=1e-12)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=6), elements=st.floats(-1e6, 1e6)))
def test_undoing_gives_the_samples_back(x: np.ndarray) -> None:
    found = Standardizer.fit(x)
    # A feature that varies by less than a few roundings counts as constant, so it may come back as much off.
    np.testing.assert_allclose(found.undo(found.apply(x)), x, rtol=1e-13, atol=1e-9)


def test_one_row_has_no_live_feature() -> None:
    found = Standardizer.fit(np.array([[3.0, -1.0]]))
    assert not found.live.any()
    assert found.apply(np.array([[3.0, -1.0]])).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_small_spread_far_from_zero_is_live(layout: type) -> None:
    x = RNG.uniform(1.7e9, 1.7e9 + 1, size=(400, 1))
    found = Standardizer.fit(layout(x))
    assert found.live.all()
    exact = np.array([float(value - Fraction(1_700_000_000)) for value in map(Fraction, x[:, 0].tolist())])
    np.testing.assert_allclose(found.scale, exact.std(), rtol=1e-6)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_what_only_rounding_moves_is_dead(layout: type) -> None:
    x = np.where(np.arange(1001) % 3 == 0, 0.1 + 0.2, 0.3).reshape(-1, 1)
    assert len(np.unique(x)) == 2
    assert Standardizer.fit(layout(x)).live.tolist() == [False]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_constant_feature_of_very_many_rows_is_dead(layout: type) -> None:
    found = Standardizer.fit(layout(np.full((300_000, 2), [0.1, 1.7e9 + 0.3])))
    assert found.scale.tolist() == [0.0, 0.0]
    assert found.mean.tolist() == [0.1, 1.7e9 + 0.3]
