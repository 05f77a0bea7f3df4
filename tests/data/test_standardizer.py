from __future__ import annotations

import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import StandardScaler

from pinoise.data import dataset
from pinoise.data.dataset import Samples
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Scaling, Standardizer, auto_scaling
from pinoise.errors import UserError
from pinoise.networks import write_tensors
from pinoise.training.build.model import read_standardizer, standardizer_tensors

RNG = np.random.default_rng(0)
SCALINGS: list[Scaling] = ["features", "global", "rows"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_agrees_with_scikit_learn_even_far_from_zero(dtype: str, offset: float) -> None:
    x = (RNG.normal(size=(3000, 7)) * np.logspace(-1, 3, 7) + offset).astype(dtype)
    reference = StandardScaler().fit(x.astype(np.float64))
    found = Standardizer.fit(x)
    np.testing.assert_allclose(found.mean, reference.mean_, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.scale, reference.scale_, rtol=1e-9)
    np.testing.assert_allclose(found.apply(x), reference.transform(x.astype(np.float64)), atol=1e-7)


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


@pytest.mark.parametrize("scaling", ["auto", *SCALINGS])
@given(
    x=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=3, max_side=6), elements=st.floats(-1e6, 1e6)),
)
def test_undoing_gives_the_samples_back(x: np.ndarray, scaling: Scaling) -> None:
    x = np.where(np.abs(x) < 1e-100, 0.0, x)  # smaller numbers than these are refused
    found = Standardizer.fit(x, scaling=scaling)
    # A feature that varies by less than a few roundings counts as constant, so it may come back as much off.
    np.testing.assert_allclose(found.undo(found.apply(x), found.norms(x)), x, rtol=1e-13, atol=2e-8)


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


def slowly(x: np.ndarray, scaling: Scaling) -> tuple[np.ndarray, ...]:
    """Mean, scale, deviation and standardised samples, feature by feature."""
    rows = x.astype(np.float64).reshape(len(x), -1)
    if scaling == "rows":
        rows = np.array([row / np.linalg.norm(row) if row.any() else row for row in rows])
    spreads = [0.0 if len(set(column)) == 1 else float(column.std()) for column in rows.T]
    live = [spread for spread in spreads if spread > 0]
    g = float(np.sqrt(sum(spread**2 for spread in live) / len(live)))
    scale = np.array([0.0 if spread == 0 else (spread if scaling == "features" else g) for spread in spreads])
    standard = np.zeros_like(rows)
    for j in np.flatnonzero(scale):
        standard[:, j] = (rows[:, j] - rows[:, j].mean()) / scale[j]
    shaped = [part.reshape(x.shape[1:]) for part in (rows.mean(axis=0), scale, standard.std(axis=0))]
    return (*shaped, standard.reshape(x.shape))


def counts(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Sparse counts with features of very different frequency, a dead one, and a row of zeros."""
    x = RNG.poisson(np.linspace(0.05, 2.0, int(np.prod(shape))).reshape(shape), (300, *shape)).astype(dtype)
    x[:, 0] = 0
    x[17] = 0
    return x


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("shape", [(12,), (4, 3), (5, 4, 3)])
def test_every_scaling_agrees_with_the_slow_way(shape: tuple[int, ...], dtype: str, scaling: Scaling) -> None:
    x = counts(shape, dtype)
    found = Standardizer.fit(x, scaling=scaling)
    mean, scale, deviation, standard = slowly(x, scaling)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.scale, scale, rtol=1e-12)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-12)
    np.testing.assert_allclose(found.apply(x), standard, atol=1e-12)
    assert found.unit_rows == (scaling == "rows")


def untidy(x: np.ndarray) -> sp.csr_array:
    """The same values as a sparse matrix with stored zeros, values in two parts and columns out of order."""
    rows, columns = (index[::-1] for index in np.indices(x.shape).reshape(2, -1))
    halves = np.where(x % 2 == 0, x / 2, 0)[rows, columns]
    entries = np.concatenate([halves, x[rows, columns] - halves])
    order = np.argsort(np.tile(rows, 2), kind="stable")
    indptr = np.arange(len(x) + 1) * 2 * x.shape[1]
    return sp.csr_array((entries[order], np.tile(columns, 2)[order], indptr), shape=x.shape)


@pytest.mark.parametrize("scaling", ["auto", *SCALINGS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dense_sparse_and_mapped_samples_teach_the_same(
    dtype: str, scaling: Scaling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = counts((12,), dtype)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    tangled = untidy(x)
    stored = tangled.nnz
    whole = Standardizer.fit(x, scaling=scaling)
    monkeypatch.setattr(dataset, "CHUNK_VALUES", 12 * 7)
    for other in (sp.csr_array(x), tangled, np.load(tmp_path / "x.npy", mmap_mode="r")):
        found = Standardizer.fit(other, scaling=scaling)
        for name in ("mean", "scale", "deviation"):
            np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-12, err_msg=name)
        assert found.live.tolist() == whole.live.tolist()
        assert found.unit_rows == whole.unit_rows
        np.testing.assert_array_equal(found.norms(other), whole.norms(x))
    assert tangled.nnz == stored


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=4, max_side=5), elements=st.floats(-1e6, 1e6)))
def test_norms_are_those_of_numpy(x: np.ndarray) -> None:
    expected = [np.linalg.norm(sample) for sample in x]
    np.testing.assert_allclose(Standardizer.norms(x), expected, rtol=1e-14, atol=1e-150)


def test_norms_of_a_row_do_not_depend_on_how_it_is_stored_or_on_other_rows() -> None:
    x = np.where(RNG.random((50, 5000)) < 0.2, RNG.normal(size=(50, 5000)), 0.0)
    norms = Standardizer.norms(x)
    for same in (np.asfortranarray(x), x.reshape(50, 100, 50)):
        np.testing.assert_array_equal(Standardizer.norms(same), norms)
    for matrix in (sp.csr_array(x), untidy(x)):
        np.testing.assert_allclose(Standardizer.norms(matrix), norms, rtol=1e-14)
    np.testing.assert_array_equal([Standardizer.norms(x[i : i + 1])[0] for i in range(50)], norms)
    assert Standardizer.norms(x[:0]).shape == Standardizer.norms(sp.csr_array(x[:0])).shape == (0,)


def filled_with(values: list[float], shape: tuple[int, ...]) -> np.ndarray:
    x = np.zeros(shape)
    x.flat[: len(values)] = values
    return x


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (filled_with([1.0] * 20, (10, 20)), "rows"),  # 90 % of 200
        (filled_with([1.0] * 21, (10, 20)), "global"),
        (filled_with([2.5] * 20, (10, 20)), "rows"),
        (filled_with([2.5] * 21, (10, 20)), "features"),
        (filled_with([1.0] * 199, (10, 20)), "global"),
        (filled_with([1.0] * 199 + [2.0], (10, 20)), "features"),
        (filled_with([1.0] * 199 + [-1.0], (10, 20)), "features"),
        (filled_with([], (10, 20)), "rows"),
        (filled_with([1.0] * 20, (10, 2, 10)), "rows"),
        (filled_with([1.0] * 21, (10, 2, 10)), "global"),
        (filled_with([1.0], (10, 1)), "features"),
        (filled_with([1.0], (10, 1, 1)), "features"),
        (filled_with([1.0], (10, 2)), "rows"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 60, 1 << 22])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auto_decides_by_zeros_and_ones(
    x: np.ndarray, expected: str, chunk: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "CHUNK_VALUES", chunk)
    x = x.astype(dtype)
    layouts: list[Samples] = [x, x[::-1], *([sp.csr_array(x), untidy(x)] if x.ndim == 2 else [])]
    assert [auto_scaling(layout) for layout in layouts] == [expected] * len(layouts)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_of_zeros_alone_leave_nothing_live(layout: type, scaling: Scaling) -> None:
    x = np.zeros((4, 3), dtype=np.float32)
    found = Standardizer.fit(layout(x), scaling=scaling)
    for part in (found.mean, found.scale, found.deviation, *found.apply(x)):
        assert part.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_array_equal(found.undo(found.apply(x), found.norms(x)), x)


def test_scaling_by_rows_is_undone_with_the_norms_of_the_rows_or_to_length_1() -> None:
    x = counts((12,), "float64")
    found = Standardizer.fit(x, scaling="rows")
    standard, norms = found.apply(x[:3]), found.norms(x[:3])
    np.testing.assert_allclose(found.undo(standard, norms), x[:3], atol=1e-13)
    np.testing.assert_allclose(found.undo(standard), x[:3] / norms[:, None], atol=1e-13)


def test_an_unknown_scaling_is_named() -> None:
    with pytest.raises(UserError, match="unknown scaling 'row': did you mean 'rows'"):
        Standardizer.fit(np.eye(3), scaling="row")  # type: ignore[arg-type]


def test_mean_and_scale_alone_mean_scaling_by_features() -> None:
    x = counts((12,), "float64")
    fitted = Standardizer.fit(x, scaling="features")
    alone = Standardizer(mean=fitted.mean, scale=fitted.scale)
    assert alone.deviation.tolist() == fitted.deviation.tolist() == [0.0] + 11 * [1.0]
    np.testing.assert_array_equal(alone.apply(x), fitted.apply(x))


@pytest.mark.parametrize("scaling", ["auto", *SCALINGS])
def test_a_wide_sparse_matrix_is_made_dense_in_parts_alone(scaling: Scaling) -> None:
    values, rows, columns = RNG.random(10_000), RNG.integers(5000, size=10_000), RNG.integers(20_000, size=10_000)
    x = sp.csr_array((values, (rows, columns)), shape=(5000, 20_000))  # 800 MB if dense
    assert peak_memory(x, scaling) < 150e6


def peak_memory(x: Any, scaling: Scaling) -> int:
    tracemalloc.start()
    try:
        Standardizer.fit(x, scaling=scaling)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["one number", "five numbers", "five standardised numbers"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_table_of_numbers_and_categories_is_no_text(kind: str, sparse: bool) -> None:
    random = np.random.default_rng(0)
    numbers = {"one number": 1, "five numbers": 5, "five standardised numbers": 5}[kind]
    centre, spread = (0, 1) if "standardised" in kind else (50, 10)
    columns = [random.normal(centre, spread, size=(400, numbers))]
    columns += [np.eye(30)[random.integers(30, size=400)] for _ in range(2 * numbers)]
    table = np.concatenate(columns, axis=1)
    assert (table == 0).mean() >= 0.9
    assert auto_scaling(sp.csr_array(table) if sparse else table) == "features"


@pytest.mark.parametrize("sparse", [False, True])
def test_counts_with_one_common_word_are_a_text(sparse: bool) -> None:
    random = np.random.default_rng(0)
    counts = random.poisson(0.05, size=(400, 200)).astype(np.float64)
    counts[:, 0] = random.poisson(2, size=400)
    assert auto_scaling(sp.csr_array(counts) if sparse else counts) == "rows"


def images(shape: tuple[int, ...]) -> np.ndarray:
    """Pixels whose channels have different means, some of which never vary."""
    x = np.random.default_rng(1).integers(0, 200, size=(30, *shape)).astype(np.uint8)
    x[:, 0] = 7
    return x


@pytest.mark.parametrize(("shape", "axes"), [((6, 5), (0, 1, 2)), ((6, 5, 3), (0, 1, 2)), ((6, 5, 12), (0, 1, 2))])
def test_channels_have_one_centre_and_one_scale_each(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = images(shape)
    found = Standardizer.fit(x, scaling="channels")
    channels = shape[2] if len(shape) == 3 else 1
    assert found.shape == (channels, 6, 5)
    last = x.reshape(30, 6, 5, channels).astype(np.float64)
    for channel in range(channels):
        np.testing.assert_allclose(found.mean[channel], last[..., channel].mean())
        np.testing.assert_allclose(found.scale[channel], last[..., channel].std())
        np.testing.assert_allclose(found.deviation[channel], last[..., channel].std(axis=0) / last[..., channel].std())
    assert not found.deviation[:, 0].any()  # a row of pixels that never vary gets no noise
    np.testing.assert_allclose(found.undo(found.apply(x)), x, atol=1e-9)
    assert found.white == 255


@pytest.mark.parametrize(
    ("x", "white"),
    [(np.zeros((2, 3, 3)), 1.0), (np.full((2, 3, 3), 200.0), 255.0), (np.zeros((2, 3, 3), np.uint16), 65535.0)],
)
def test_white_follows_from_the_type_or_the_values(x: np.ndarray, white: float) -> None:
    assert Standardizer.fit(x, scaling="channels").white == white


def test_vectors_have_no_channels() -> None:
    with pytest.raises(UserError, match=r"samples have the shape \(4,\): images are"):
        Standardizer.fit(np.zeros((3, 4)), scaling="channels")


@pytest.mark.parametrize("scaling", ["channels", "compressed", *SCALINGS])
def test_what_is_learned_lies_as_it_comes_back_from_a_file(scaling: Scaling, tmp_path: Path) -> None:
    x = np.asfortranarray(np.random.default_rng(0).integers(0, 256, (20, 8, 6, 3)).astype(np.uint8))
    learned = Standardizer.fit(x, scaling=scaling)
    write_tensors(tmp_path / "s.safetensors", standardizer_tensors(learned))
    again = read_standardizer(tmp_path / "s.safetensors")
    for name in ("mean", "scale", "deviation"):
        assert getattr(learned, name).strides == getattr(again, name).strides, name
        np.testing.assert_array_equal(getattr(learned, name), getattr(again, name))
    assert again.unit_rows is learned.unit_rows is (scaling == "rows")
    np.testing.assert_array_equal(again.apply(x), learned.apply(x))


def one_hots(rows: int = 400) -> npt.NDArray[np.float64]:
    """A number with heavy tails, and a category of ten values, most of them rare."""
    random = np.random.default_rng(0)
    category = random.choice(10, p=[0.91] + [0.01] * 9, size=rows)
    return np.column_stack([random.lognormal(0, 3, rows), np.eye(10)[category]])


@pytest.mark.parametrize("scaling", ["features", "compressed", "auto"])
def test_a_category_has_the_variance_of_one_number_and_its_values_one_unit(scaling: Scaling) -> None:
    x = one_hots()
    standardizer = Standardizer.fit(x, scaling=scaling, spans=((1, 11),))
    standard = standardizer.apply(x)
    assert standard[:, 1:].var(axis=0).sum() == pytest.approx(1)
    assert len(np.unique(standardizer.scale[1:].round(12))) == 1
    assert standardizer.deviation.tolist() == [1.0] * 11
    np.testing.assert_allclose(standardizer.undo(standard), x, atol=1e-9)
    rows = make_rows(x, standardizer)[torch.arange(len(x))]
    np.testing.assert_allclose(rows, standard, atol=1e-5)


def test_one_unit_for_all_features_counts_a_category_once() -> None:
    x = one_hots()
    standardizer = Standardizer.fit(x, scaling="global", spans=((1, 11),))
    variance = standardizer.apply(x).var(axis=0)
    assert (variance[0] + variance[1:].sum()) / 2 == pytest.approx(1)
    np.testing.assert_allclose(standardizer.deviation[1:], np.sqrt(variance[1:].sum()))


def test_the_scaling_is_chosen_by_the_numbers_of_a_table_alone() -> None:
    random = np.random.default_rng(0)
    categories = np.eye(40)[random.integers(40, size=200)]
    numbers = random.normal(size=(200, 1))
    for x, span in ((categories, (0, 40)), (np.hstack([numbers, categories]), (1, 41))):
        assert Standardizer.fit(x, spans=(span,)).unit_rows is False


def test_rows_of_length_one_and_categories_do_not_go_together() -> None:
    with pytest.raises(UserError, match="this table has categories"):
        Standardizer.fit(one_hots(), scaling="rows", spans=((1, 11),))


def test_a_value_that_training_rows_lack_is_dead() -> None:
    x = np.eye(4)[[0, 1, 2, 2]]
    standardizer = Standardizer.fit(x, spans=((0, 4),))
    assert standardizer.live.tolist() == [True, True, True, False]
    assert standardizer.apply(x).var(axis=0).sum() == pytest.approx(1)
