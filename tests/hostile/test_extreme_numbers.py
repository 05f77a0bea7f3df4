"""Very large numbers are refused with row and column, or embedded; differences below 1e-140 count as none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise import PiNDA
from pinoise.data.checks import LARGEST_NUMBER
from pinoise.data.readers import from_arrays
from pinoise.data.rows import FARTHEST, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError

SIZES = [1e10, 1e30, 3e37, 3e38, 1e39, 1e154, 1e155, 1e200, 1e307, 1e-30, 1e-45, 1e-139, 1e-155, 1e-200, 1e-300]
NAMED = re.compile(r"row \d+.*feature \d+|feature \d+.*row \d+|every feature is constant")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def samples(extent: str, size: float, dtype: Any, *, seed: int = 0) -> Any:
    """Samples of which all values, one column or one cell are of this size."""
    ordinary = np.random.default_rng(seed).normal(size=(30, 3))
    part: Any = {"all": np.s_[:, :], "column": np.s_[:, 1], "cell": np.s_[5, 1]}[extent]
    x = ordinary.copy()
    x[part] *= size
    return np.clip(x, -LARGEST_NUMBER, LARGEST_NUMBER).astype(dtype) if dtype == np.float32 else x


def check(embedding: Any, x: Any) -> None:
    """An embedding is finite, and has no constant column for a feature that varies."""
    assert np.isfinite(embedding).all()
    varying = np.ptp(x.astype(np.float64), axis=0) > 1e-139
    assert ((embedding[:, : x.shape[1]] != embedding[:1, : x.shape[1]]).any(axis=0) >= varying).all()
    assert (embedding[:, x.shape[1] :] != embedding[:1, x.shape[1] :]).any(axis=0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("extent", ["all", "column", "cell"])
@pytest.mark.parametrize("size", SIZES)
def test_numbers_of_any_size_are_learned_from_or_named(size: float, extent: str, dtype: Any) -> None:
    x = samples(extent, size, dtype)
    model = PiNDA(4, hidden=8, epochs=1, random_state=0)
    usual = model.fit(samples(extent, 1, dtype)).transform(samples(extent, 1, dtype))
    try:
        found = model.fit(x).transform(x)
    except UserError as error:
        assert NAMED.search(str(error)) or not x.any(), error  # noqa: PT017
        assert not 1e-38 < size < 1e37
        return
    check(found, x)
    if extent == "all" and 1e-38 < size < 1e38:  # what is standardised does not depend on the unit
        np.testing.assert_allclose(found, usual, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scaling", ["features", "global", "rows"])
@pytest.mark.parametrize("size", [1e155, 1e300, 1e-154, 1e-200, 1e-300])
def test_sparse_and_dense_samples_fare_the_same(size: float, scaling: str) -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, 12)) < 0.4, rng.random((40, 12)) * size, 0)
    outcomes: list[Any] = []
    for given in (x, sp.csr_array(x)):
        model = PiNDA(4, hidden=8, epochs=1, scaling=scaling, random_state=0)
        try:
            outcomes.append(model.fit(given).transform(given))
        except UserError as error:
            outcomes.append(str(error))
    dense, sparse = outcomes
    if isinstance(dense, str):
        assert NAMED.search(dense)
        assert NAMED.search(str(sparse))
    else:
        check(dense, x)
        np.testing.assert_allclose(sparse, dense, rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e18, 3e38, 1e200])
@pytest.mark.parametrize("verb", ["transform", "augment", "noise_scale"])
def test_a_later_cell_that_is_too_far_away_is_named(verb: str, size: float, dtype: Any, sparse: bool) -> None:
    x = samples("all", 1, dtype)
    later = samples("all", 1, dtype, seed=1)
    later[7, 2] = min(size, LARGEST_NUMBER) if dtype == np.float32 else size
    as_given = sp.csr_array if sparse else np.asarray
    model = PiNDA(4, hidden=8, epochs=1, random_state=0).fit(as_given(x))
    with pytest.raises(UserError, match=r"row 7 \(counted from 0\), feature 2"):
        getattr(model, verb)(as_given(later))


def test_whole_numbers_are_held_to_the_same_limit() -> None:
    fitted = Standardizer.fit(np.array([[0.0, 1e-9], [1.0, 2e-9], [2.0, 0.0]]))
    later = np.array([[0, 0], [1, 2**62]])
    with pytest.raises(
        UserError, match=rf"row 1 \(counted from 0\), feature 1 is more than {FARTHEST:g}".replace("+", r"\+")
    ):
        make_rows(later, fitted)


def test_arrays_and_tables_have_one_limit() -> None:
    import pyarrow as pa

    x = np.array([[1.0, 2.0], [2.0, 1e39], [3.0, 5.0]])
    with pytest.raises(UserError, match=r"has 1e\+39 in row 1 \(counted from 0\), feature 1, which is too large"):
        from_arrays(x)
    with pytest.raises(UserError, match=r"column 'b', data row 2 holds 1e\+39, which is too large"):
        from_arrays(pa.table({"a": x[:, 0], "b": x[:, 1]}))
    from_arrays(np.where(x > 1e38, LARGEST_NUMBER, x))


@pytest.mark.parametrize("size", [1e30, 1e-30, 1e-130])
def test_images_of_any_unit_are_standardised(size: float) -> None:
    x = np.random.default_rng(0).random((6, 5, 4)) * size
    fitted = Standardizer.fit(x, scaling="channels")
    import torch

    standard = make_rows(x, fitted)[torch.arange(6)]
    assert standard.std().item() == pytest.approx(1, rel=0.02)
