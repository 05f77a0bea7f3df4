from __future__ import annotations

import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pinoise import HealthWarning, PiNDA, UserError
from pinoise.networks.embedding import LEARNED_WEIGHT
from pinoise.training.metrics import METRICS


def small(**changes: Any) -> PiNDA:
    values: dict[str, Any] = {
        "n_components": 8,
        "hidden": 32,
        "epochs": 3,
        "batch_size": 64,
        "random_state": 0,
    }
    return PiNDA(**{**values, **changes})


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.data[:300], data.target[:300]


@pytest.mark.slow
# No check is skipped here; scikit-learn itself exempts the array API check where SCIPY_ARRAY_API is not set.
@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # the checks fit a few rows
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        PiNDA(n_components=4, hidden=8, epochs=2, random_state=0),
        PiNDA(n_components=2, hidden=8, epochs=1, generator="shared", mean="learned", method="clae", random_state=0),
    ]
)
def test_the_scikit_learn_contract_is_kept(estimator: PiNDA, check: Any) -> None:
    check(estimator)


def test_transform_is_the_encoder_on_standardised_samples_alone_or_beside_them(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    X = digits[0]
    live = X.std(axis=0) > 0
    standard = np.where(live, (X - X.mean(axis=0)) / np.where(live, X.std(axis=0), 1), 0)
    model = small(embedding="learned").fit(X)
    with torch.no_grad():
        learned = model.encoder_(torch.from_numpy(standard).float()).numpy()
    unit = learned / np.linalg.norm(learned, axis=1, keepdims=True)
    block = (unit - unit.mean(axis=0)) / np.sqrt(unit.var(axis=0).sum())
    block *= np.sqrt(live.sum())
    np.testing.assert_allclose(model.transform(X), block, atol=1e-3)

    joined = small().fit(X)  # the same seed gives the same encoder
    Z = joined.transform(X)
    assert Z.shape == (300, 64 + 8)
    np.testing.assert_allclose(Z[:, :64], standard, atol=1e-5)
    np.testing.assert_allclose(Z[:, 64:], LEARNED_WEIGHT * block, atol=1e-3)


@pytest.mark.parametrize(("embedding", "raw"), [("joined", 64), ("learned", 0)])
def test_raw_columns_keep_their_names_and_learned_ones_are_numbered(
    digits: tuple[np.ndarray, np.ndarray], embedding: str, raw: int, tmp_path: Path
) -> None:
    model = small(embedding=embedding, epochs=1).fit(digits[0])
    model.save(tmp_path / "model")
    learned = [f"pinda{i}" for i in range(8)]
    for each in (model, PiNDA.load(tmp_path / "model")):
        assert each.transform(digits[0]).shape == (300, raw + 8)
        assert list(each.get_feature_names_out()) == [*(f"x{i}" for i in range(raw)), *learned]
        given = [f"pixel{i}" for i in range(64)]
        assert list(each.get_feature_names_out(given)) == [*given[:raw], *learned]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_and_dense_input_give_the_same(digits: tuple[np.ndarray, np.ndarray], kind: Any) -> None:
    X = digits[0]
    dense, sparse = small().fit(X), small().fit(kind(X))
    np.testing.assert_allclose(sparse.transform(kind(X)), dense.transform(X), atol=1e-5)
    np.testing.assert_allclose(sparse.scale_, dense.scale_)


def counts(rows: int = 200) -> np.ndarray:
    """Texts as counts of words: nearly all zeros, of topics that have their own words, and one empty text."""
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.1, size=(4, 150))
    topics /= topics.sum(axis=1, keepdims=True)
    topic = np.arange(rows) % 4
    X = rng.poisson(rng.uniform(3, 12, size=(rows, 1)) * topics[topic]).astype(float)
    X[np.arange(rows), topics.argmax(axis=1)[topic]] += 1
    X[5] = 0
    return X


def test_texts_are_scaled_by_rows_whether_sparse_or_dense() -> None:
    X = counts()
    sparse = small().fit(sp.csr_matrix(X))
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    unit = X / np.where(lengths > 0, lengths, 1)
    np.testing.assert_allclose(sparse.mean_, unit.mean(axis=0))
    live = X.any(axis=0)
    common = math.sqrt(unit.var(axis=0)[live].mean())
    np.testing.assert_allclose(sparse.scale_, np.where(live, common, 0))
    centred = unit - unit.mean(axis=0)
    again = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(sparse.transform(X)[:, :150], math.sqrt(150) * again, atol=1e-5)
    np.testing.assert_array_equal(sparse.transform(sp.csr_matrix(X)), sparse.transform(X))
    np.testing.assert_allclose(small().fit(X).transform(X), sparse.transform(X), atol=1e-5)
    np.testing.assert_array_equal(sparse.augment(sp.csc_matrix(X), random_state=1), sparse.augment(X, random_state=1))


def test_noisy_texts_return_to_counts_of_the_same_length() -> None:
    X = counts()
    lengths = np.linalg.norm(X, axis=1)
    model = small(objective="fixed", initial_scale=0.5).fit(sp.csr_matrix(X))
    noise = np.stack([model.augment(sp.csr_matrix(X), random_state=seed) - X for seed in range(40)])
    np.testing.assert_array_equal(noise[:, 5], 0)  # nothing has a direction in an empty text
    unit = X / np.where(lengths > 0, lengths, 1)[:, None]
    filled = lengths > 0
    found = (noise[:, filled] / lengths[filled, None]).std(axis=(0, 1))
    np.testing.assert_allclose(found, 0.5 * unit.std(axis=0), rtol=0.1, atol=1e-9)
    np.testing.assert_allclose(
        model.noise_scale(X, relative=False), np.broadcast_to(0.5 * unit.std(axis=0), X.shape), rtol=1e-5, atol=1e-9
    )


def nearly_noiseless(**changes: Any) -> PiNDA:
    """A model whose noise is the way to a neighbour and next to nothing beside it."""
    return small(initial_scale=1e-6, covariance="diagonal", epochs=1, noise_learning_rate=1e-9, **changes)


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
def test_augment_moves_samples_along_the_data(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits
    noisy = nearly_noiseless().fit(X).augment(X, random_state=1)
    distances = np.linalg.norm(noisy[:, None] - X[None], axis=2)
    assert distances.min(axis=1).max() < 0.01  # each is at one of the rows
    landed = distances.argmin(axis=1)
    assert (landed != np.arange(300)).mean() > 0.7
    assert (y[landed] == y).mean() > 0.85  # and a row near it, which chance would make .1
    still = nearly_noiseless(neighbours=0).fit(X).augment(X, random_state=1)
    np.testing.assert_allclose(still, X, atol=0.01)


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
def test_augmented_texts_have_the_direction_of_a_neighbour_and_their_own_length() -> None:
    X = np.delete(counts(), 5, axis=0)
    lengths = np.linalg.norm(X, axis=1)
    noisy = nearly_noiseless(scaling="rows").fit(sp.csr_matrix(X)).augment(X, random_state=1)
    np.testing.assert_allclose(np.linalg.norm(noisy, axis=1), lengths, rtol=1e-3)
    cosines = noisy @ X.T / lengths[:, None] / lengths
    assert cosines.max(axis=1).min() > 0.9999
    landed = cosines.argmax(axis=1)
    assert (landed != np.arange(len(X))).mean() > 0.5
    topics = np.delete(np.arange(200) % 4, 5)
    assert (topics[landed] == topics).mean() > 0.9


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
def test_sparse_input_is_never_made_dense_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sp.random(20_000, 500, density=0.002, random_state=0, format="csr")
    largest = 0
    original = sp.csr_array.toarray

    def watched(self: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        nonlocal largest
        largest = max(largest, self.shape[0])
        return np.asarray(original(self, *args, **kwargs))

    monkeypatch.setattr(sp.csr_array, "toarray", watched)
    monkeypatch.setattr("pinoise.data.dataset.CHUNK_VALUES", 1 << 16)
    monkeypatch.setattr("pinoise.noise.support.SUPPORT_ROWS", 200)
    small(batch_size=100, epochs=1).fit(X)
    assert 0 < largest < 10_000  # parts of a bounded number of values


def test_pandas_goes_in_and_comes_out(digits: tuple[np.ndarray, np.ndarray]) -> None:
    frame = pd.DataFrame(digits[0], columns=[f"pixel{i}" for i in range(64)], index=np.arange(300) + 1000)
    model = small().set_output(transform="pandas").fit(frame)
    result = model.transform(frame)
    assert list(result.columns) == [*frame.columns, *(f"pinda{i}" for i in range(8))]
    assert list(result.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"pixel0": "other"}))


def test_it_works_in_a_pipeline_a_grid_and_cross_validation(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = digits
    pipeline = make_pipeline(small(), LogisticRegression(max_iter=500))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.5
    grid = GridSearchCV(pipeline, {"pinda__n_components": np.array([4, 8])}, cv=2).fit(X, y)
    assert grid.best_params_["pinda__n_components"] in (4, 8)


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epochs": 12, "embedding": "learned", "scaling": "rows", "generator": "shared", "mean": "learned"},
        {"neighbours": 0, "initial_scale": 1e-3},
        {"neighbours": 3, "augmentations": ("neighbours",)},
        {"objective": "paper", "generator": "shared", "augmentations": ("scarf", {"name": "dacl", "alpha": 0.8})},
        {"objective": "adversarial", "distribution": "uniform"},
        {"objective": "information", "epochs": 1},
        {"objective": "fixed"},
    ],
)
def test_pickle_and_clone_and_files_keep_everything(
    digits: tuple[np.ndarray, np.ndarray], tmp_path: Path, changes: dict[str, Any]
) -> None:
    X = pd.DataFrame(digits[0], columns=[f"p{i}" for i in range(64)])
    model = small(**changes).fit(X)
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), PiNDA.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
        np.testing.assert_array_equal(other.noise_scale(X), model.noise_scale(X))
        np.testing.assert_array_equal(other.augment(X, random_state=1), model.augment(X, random_state=1))
        assert other.model_.settings == model.model_.settings
        np.testing.assert_equal(other.history_, model.history_)
        assert other.flags_ == model.flags_
        assert list(other.feature_names_in_) == list(X.columns)
        assert other.n_features_in_ == 64
    assert not hasattr(clone(model), "encoder_")


def test_names_of_features_follow_the_fitted_encoder(digits: tuple[np.ndarray, np.ndarray]) -> None:
    model = small(n_components=4).fit(digits[0]).set_params(n_components=9, embedding="learned")
    assert list(model.get_feature_names_out()[64:]) == [f"pinda{i}" for i in range(4)]


def test_every_augmented_copy_is_another_and_their_sequence_repeats_itself(
    digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X = digits[0]
    model = small(epochs=1).fit(X)
    model.save(tmp_path / "model")
    copies = [model.augment(X) for _ in range(3)]
    assert not any(np.array_equal(copies[i], copies[j]) for i in range(3) for j in range(i))
    for again in (PiNDA.load(tmp_path / "model"), small(epochs=1).fit(X), model.fit(X)):
        np.testing.assert_array_equal([again.augment(X) for _ in range(3)], copies)
    np.testing.assert_array_equal(model.augment(X, random_state=3), model.augment(X, random_state=3))
    unseeded = small(epochs=1, random_state=None)
    assert not np.array_equal(unseeded.fit(X).augment(X), unseeded.fit(X).augment(X))


def test_a_pickled_model_goes_on_with_its_sequence_of_copies(digits: tuple[np.ndarray, np.ndarray]) -> None:
    model = small(epochs=1).fit(digits[0])
    model.augment(digits[0])
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.augment(digits[0]), model.augment(digits[0]))


def test_fewer_rows_than_a_batch_flood_nobody_with_warnings(digits: tuple[np.ndarray, np.ndarray]) -> None:
    search = GridSearchCV(small(epochs=1, batch_size=256), {"n_components": [2, 3]}, cv=3, scoring=lambda *_: 0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(digits[0][:120])
    assert [str(each.message) for each in caught if not issubclass(each.category, HealthWarning)] == []


def test_augment_adds_noise_of_the_stated_scale_in_the_units_of_the_data(
    digits: tuple[np.ndarray, np.ndarray],
) -> None:
    X = digits[0] * 1000 + 5
    model = small(objective="fixed", initial_scale=0.5).fit(X)
    noise = np.stack([model.augment(X, random_state=seed) - X for seed in range(30)])
    live = X.std(axis=0) > 0
    np.testing.assert_allclose(noise[:, :, live].std(axis=(0, 1)), 0.5 * X.std(axis=0)[live], rtol=0.05)
    np.testing.assert_allclose(noise[:, :, ~live], 0, atol=1e-9)
    np.testing.assert_array_equal(model.augment(X, random_state=1), model.augment(X, random_state=1))
    np.testing.assert_allclose(model.noise_scale(X)[:, live], 0.5, rtol=1e-5)
    np.testing.assert_allclose(model.noise_scale(X, relative=False), 0.5 * np.broadcast_to(X.std(axis=0), X.shape))


def test_history_tells_every_epoch(digits: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    model = small(verbose=True).fit(digits[0])
    assert model.history_["epoch"] == [1, 2, 3]
    assert {len(values) for values in model.history_.values()} == {3}
    assert list(model.history_) == ["epoch", "loss", "seconds", *METRICS]
    assert "epoch 3 · step 12/12" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # of the one that learns nothing
def test_the_embedding_learns() -> None:
    X, y = load_digits(return_X_y=True)
    accuracy = {}
    for rate in (1e-12, 1e-3):  # the first leaves the encoder where it began
        model = PiNDA(32, embedding="learned", hidden=128, epochs=15, learning_rate=rate, random_state=0).fit(X[:1200])
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(
            model.transform(X[:200]), y[:200]
        )
        accuracy[rate] = probe.score(model.transform(X[1200:]), y[1200:])
    assert accuracy[1e-3] > accuracy[1e-12] + 0.1


def test_collapsed_noise_is_a_warning_with_a_name(digits: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.warns(HealthWarning, match="shrink: the learned noise collapsed"):
        model = small(objective="paper", epochs=40, hidden=128).fit(digits[0])
    assert model.flags_ == ["shrink"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", HealthWarning)
        assert small(epochs=10).fit(digits[0]).flags_ == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_components": 0}, "setting 'n_components' is 0: input should be greater than or equal to 1"),
        ({"temperature": -0.1}, "setting 'temperature' is -0.1"),
        ({"method": "simclrr"}, "did you mean 'simclr'"),
        ({"distribution": "normal"}, "Allowed: gaussian, uniform"),
        ({"pairing": "compose"}, "pairing 'compose' adds noise on top of augmentations"),
        ({"augmentations": ("scraf",)}, "did you mean 'scarf'"),
        ({"objective": "fixed", "penalty": 1.0}, "unknown setting 'penalty': objective has no settings"),
        ({"scaling": "row"}, "setting 'scaling' is 'row': did you mean 'rows'"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
    ],
)
def test_each_bad_parameter_gets_one_sentence(
    digits: tuple[np.ndarray, np.ndarray], changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError) as caught:
        small(**changes).fit(digits[0])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_samples_get_one_sentence(digits: tuple[np.ndarray, np.ndarray]) -> None:
    X = digits[0].copy()
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        small().fit(X[:1])
    with pytest.raises(UserError, match="every feature is constant"):
        small().fit(np.ones((20, 3)))
    with pytest.raises(ValueError, match="64 features"):
        small().fit(X).transform(X[:, :10])
    X[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"X has NaN in row 7 \(counted from 0\), feature 3"):
        small(missing="error").fit(X)
    X[7, 3] = np.inf
    with pytest.raises(ValueError, match=r"X has inf in row 7 \(counted from 0\), feature 3"):
        small().fit(X)
