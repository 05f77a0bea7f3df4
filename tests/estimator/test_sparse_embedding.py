"""Wide sparse rows have a sparse embedding: a shift of the dense one, in little memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from pinoise import PiNDA, PiNDAClassifier
from pinoise.evaluation import precision

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.estimator.HealthWarning")

SMALL: dict[str, Any] = {"n_components": 4, "hidden": 8, "epochs": 1, "batch_size": 64, "random_state": 0}


def topics(rows: int, features: int, *, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Word counts of two topics, each with its own half of the words."""
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    half = features // 2
    words = random.integers(0, half, (rows, 20)) + half * (y[:, None] ^ (random.random((rows, 20)) < 0.2))
    counts = random.integers(1, 5, (rows, 20)).astype(np.float64)
    x = sp.csr_matrix((counts.ravel(), words.ravel(), np.arange(0, 20 * rows + 1, 20)), shape=(rows, features))
    x.sum_duplicates()
    return x, y


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows that a lowered threshold makes wide."""
    monkeypatch.setattr(precision, "WIDEST_DENSE", 50)
    return topics(120, 60)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaling", ["features", "global", "compressed"])
def test_the_sparse_embedding_is_the_dense_one_shifted(
    narrow: tuple[sp.csr_matrix, np.ndarray], scaling: str, dtype: type
) -> None:
    x = narrow[0].astype(dtype)
    model = PiNDA(scaling=scaling, **SMALL).fit(x)
    found = model.transform(x)
    assert isinstance(found, sp.csr_array)
    assert found.dtype == dtype
    dense = PiNDA(scaling=scaling, **SMALL).fit(x.toarray()).transform(x.toarray())  # from dense rows: centred
    shift = found.toarray() - dense
    np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-3)
    np.testing.assert_allclose(shift[:, 60:], 0, atol=1e-3)
    assert np.abs(shift).max() > 0.1
    assert found[:, :60].nnz == x.nnz


def test_rows_of_length_1_are_stretched_as_in_the_dense_embedding(narrow: tuple[sp.csr_matrix, np.ndarray]) -> None:
    x = narrow[0]
    model = PiNDA(scaling="rows", **SMALL).fit(x)
    found = model.transform(x).toarray()
    unit = x.toarray() / np.linalg.norm(x.toarray(), axis=1, keepdims=True)
    centred = (unit - unit.mean(axis=0)) / model.scale_.max()
    factor = np.sqrt(60) / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(found[:, :60], factor * unit / model.scale_.max(), rtol=1e-6)


def test_every_call_of_a_model_gives_the_same(narrow: tuple[sp.csr_matrix, np.ndarray], tmp_path: Path) -> None:
    x = narrow[0]
    model = PiNDA(**SMALL).fit(x)
    model.save(tmp_path / "m")
    wanted = model.transform(x).toarray()
    for other in (model, pickle.loads(pickle.dumps(model)), PiNDA.load(tmp_path / "m")):
        np.testing.assert_allclose(other.transform(x[3:5]).toarray(), wanted[3:5], rtol=1e-9)
        np.testing.assert_allclose(other.transform(x.toarray()).toarray(), wanted, rtol=1e-9)


def test_the_learned_part_alone_and_narrow_rows_are_dense(narrow: tuple[sp.csr_matrix, np.ndarray]) -> None:
    x = narrow[0]
    assert isinstance(PiNDA(embedding="learned", **SMALL).fit(x).transform(x), np.ndarray)
    assert isinstance(PiNDA(**SMALL).fit(x[:, :50]).transform(x[:, :50]), np.ndarray)
    assert isinstance(PiNDA(**SMALL).fit(x.toarray()).transform(x), np.ndarray)


def test_classifiers_take_the_sparse_embedding(narrow: tuple[sp.csr_matrix, np.ndarray]) -> None:
    x, y = narrow
    for classifier in (LogisticRegression(max_iter=1000), KNeighborsClassifier()):
        pipeline = make_pipeline(PiNDA(**SMALL), classifier).fit(x[:80], y[:80])
        assert pipeline.score(x[80:], y[80:]) > 0.9
    few = np.where(np.arange(120) < 40, y, -1)
    assert PiNDAClassifier(PiNDA(**SMALL), random_state=0).fit(x, few).score(x, y) > 0.9


@pytest.mark.slow
def test_thousands_of_features_take_the_memory_of_their_entries() -> None:
    x, _ = topics(300, 30_000)
    model = PiNDA(**SMALL).fit(x)
    found = model.transform(x)
    assert found.shape == (300, 30_004)
    assert found.nnz <= x.nnz + 300 * 4
    assert len(model.get_feature_names_out()) == 30_004
    assert found.data.nbytes + found.indices.nbytes + found.indptr.nbytes < 200_000  # dense it has 72 MB


def test_the_catalogues_sparse_sets_stay_below_the_threshold(real_data: Path) -> None:
    from pinoise.paper.catalogue.loading import load

    for name in ("reuters46", "newsgroups20", "pcmac"):
        assert load(name).train.x.shape[1] <= precision.WIDEST_DENSE
