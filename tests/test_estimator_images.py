"""The scikit-learn door for images, given as such or as rows of pixels."""

from __future__ import annotations

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
from sklearn.pipeline import make_pipeline

from pinoise import PiNDA
from pinoise.errors import UserError

pytest.importorskip("kornia")
pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # an epoch is too short to learn anything

TINY: dict[str, Any] = {
    "encoder": {"name": "resnet18", "width": 4},
    "image_shape": (8, 8),
    "hidden": 8,
    "epochs": 1,
    "batch_size": 50,
    "device": "cpu",
    "random_state": 0,
}
DIGITS = load_digits()
X, Y = DIGITS.data[:100], DIGITS.target[:100]


@pytest.fixture(scope="module")
def fitted() -> PiNDA:
    return PiNDA(**TINY).fit(X)


def test_images_and_rows_of_their_pixels_are_the_same(fitted: PiNDA) -> None:
    images = X.reshape(-1, 8, 8)
    again = PiNDA(**TINY).fit(images)
    assert again.n_features_in_ == 64
    z = fitted.transform(X)
    assert z.shape == (100, 32)  # 8 times the width
    assert len(fitted.get_feature_names_out()) == 32
    np.testing.assert_array_equal(again.transform(images), z)
    np.testing.assert_array_equal(again.transform(X), z)
    np.testing.assert_array_equal(
        fitted.augment(images, random_state=1).reshape(100, 64), fitted.augment(X, random_state=1)
    )
    assert fitted.noise_scale(images).shape == (100, 8, 8)


def test_the_embedding_is_the_encoder_on_pixels_standardised_by_channel() -> None:
    colour = np.random.default_rng(0).integers(0, 256, (60, 8, 6, 3)).astype(np.float32)
    colour[..., 2] *= 0.3
    model = PiNDA(**{**TINY, "image_shape": (8, 6, 3)}).fit(colour)
    mean, deviation = colour.mean(axis=(0, 1, 2)), colour.std(axis=(0, 1, 2))
    by_hand = torch.from_numpy(np.moveaxis((colour - mean) / deviation, -1, 1).astype(np.float32))
    with torch.no_grad():
        z = model.encoder_(by_hand).numpy()
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    z -= z.mean(axis=0)
    expected = z * np.sqrt(by_hand.var(dim=0, correction=0).sum().item() / z.var(axis=0).sum())  # the pixels' variance
    np.testing.assert_allclose(model.transform(colour), expected, atol=1e-3)


def test_noise_is_in_the_units_and_at_the_places_of_pixels() -> None:
    sample = np.repeat(X[:1], 3000, axis=0)
    plain = PiNDA(**{**TINY, "neighbours": 0, "covariance": "diagonal"}).fit(X)
    moved = plain.augment(sample) - sample
    sigma = plain.noise_scale(sample[:1], relative=False)[0]
    np.testing.assert_allclose(moved.std(axis=0), sigma, rtol=0.1, atol=1e-6)
    constant = X.std(axis=0) == 0
    assert constant.any()
    assert np.abs(moved[:, constant]).max() < 1e-6  # but for the rounding of single precision
    relative = plain.noise_scale(sample[:1])[0]
    np.testing.assert_allclose(relative[~constant] * X.std(axis=0)[~constant], sigma[~constant], rtol=1e-4)


def test_bytes_are_taken_as_they_are() -> None:
    bytes_ = (X * 15).astype(np.uint8)
    of_bytes, of_floats = (PiNDA(**TINY).fit(x) for x in (bytes_, bytes_.astype(np.float32)))
    z = of_bytes.transform(bytes_)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, of_floats.transform(bytes_.astype(np.float32)), atol=1e-5)
    noisy = of_bytes.augment(bytes_)
    assert noisy.dtype == np.float32
    assert noisy.min() < 0  # noise goes beyond black


def test_an_estimator_of_images_is_saved_cloned_and_piped(fitted: PiNDA, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = PiNDA.load(tmp_path / "model")
    assert loaded.model_.settings == fitted.model_.settings
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(loaded.noise_scale(X), fitted.noise_scale(X))
    augmented = clone(fitted).set_params(augmentations=("crop",), neighbours=0)
    pipeline = make_pipeline(augmented, LogisticRegression(max_iter=200)).fit(pd.DataFrame(X).add_prefix("pixel"), Y)
    assert pipeline.score(pd.DataFrame(X).add_prefix("pixel"), Y) > 0.3


@pytest.mark.parametrize(
    ("changes", "x", "sentence"),
    [
        ({"image_shape": None}, X, r"encoder 'resnet18' is for images: give image_shape, such as \(28, 28\)"),
        ({"encoder": "mlp"}, X, r"image_shape is \(8, 8\) and nothing here is for images: leave it out"),
        ({"image_shape": (8, 8.5)}, X, r"image_shape is \(8, 8\.5\): give a tuple of whole numbers"),
        ({"image_shape": (64,)}, X, r"samples have the shape \(64,\): images are \(height, width\)"),
        (
            {"image_shape": (8, 9)},
            X,
            r"X has the shape \(100, 64\): image_shape is \(8, 9\), so it must be \(n, 8, 9\)",
        ),
        ({}, X.reshape(-1, 4, 16), r"X has the shape \(100, 4, 16\): image_shape is \(8, 8\)"),
        ({"encoder": {"name": "resnet18", "widht": 4}}, X, "widht"),
        ({"embedding": "both"}, X, "embedding"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(changes: dict[str, Any], x: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        PiNDA(**{**TINY, **changes}).fit(x)


def test_sparse_images_are_refused() -> None:
    with pytest.raises(TypeError, match="Sparse"):
        PiNDA(**TINY).fit(sp.csr_array(X))
