"""An ONNX file computes what ``transform`` and ``noise_scale`` do, for every scaling, encoder and batch size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine

from pinoise import PiNDA

SMALL: dict[str, Any] = {"hidden": 16, "epochs": 1, "batch_size": 64, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.estimator.HealthWarning")


def run(path: Path, x: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


def assert_rows_are_close(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> None:
    """To 1e-5 of the largest value in each row, which is the rule of the export."""
    size = np.abs(wanted).reshape(len(wanted), -1).max(axis=1)
    assert (np.abs(found - wanted).reshape(len(wanted), -1).max(axis=1) <= 1e-5 * size).all()


def wine() -> npt.NDArray[np.float64]:
    return np.asarray(load_wine().data)


def heavy_tails() -> npt.NDArray[np.float64]:
    return np.exp(3 * np.random.default_rng(0).standard_normal((200, 4)))


def mostly_zeros() -> npt.NDArray[np.float64]:
    random = np.random.default_rng(0)
    x = random.poisson(0.05, (150, 40)).astype(float)
    x[3] = 0  # an empty text
    return x


def large_offsets() -> npt.NDArray[np.float64]:
    """Times in seconds, which single precision would round to two minutes, and a feature that never changes."""
    random = np.random.default_rng(0)
    return np.column_stack([1.7e9 + 60 * random.standard_normal(150), random.standard_normal(150), np.full(150, 7.0)])


@pytest.mark.parametrize(
    ("make", "scaling"),
    [
        (wine, "features"),
        (heavy_tails, "compressed"),
        (mostly_zeros, "rows"),
        (mostly_zeros, "global"),
        (large_offsets, "features"),
    ],
)
def test_the_graph_is_transform(make: Callable[[], npt.NDArray[np.float64]], scaling: str, tmp_path: Path) -> None:
    x = make()
    model = PiNDA(4, scaling=scaling, **SMALL).fit(x)
    model.to_onnx(tmp_path / "model.onnx")
    for rows in (x, x[:1]):
        assert_rows_are_close(run(tmp_path / "model.onnx", rows)["embedding"], model.transform(rows))


def test_a_model_of_sparse_rows_takes_dense_ones(tmp_path: Path) -> None:
    x = mostly_zeros()
    model = PiNDA(4, **SMALL).fit(sp.csr_array(x))
    model.to_onnx(tmp_path / "model.onnx")
    assert_rows_are_close(run(tmp_path / "model.onnx", x)["embedding"], model.transform(x))


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder",
    [
        {"name": "resnet18", "width": 4},
        {"name": "vit", "patch": 4, "dim": 12, "depth": 1, "heads": 3},
    ],
)
@pytest.mark.parametrize("image_shape", [(8, 8), (8, 4, 2)])
def test_the_graph_takes_images_as_the_data_holds_them(
    encoder: dict[str, Any], image_shape: tuple[int, ...], tmp_path: Path
) -> None:
    x = load_digits().data[:64].astype(np.uint8).reshape(64, *image_shape)
    model = PiNDA(4, encoder=encoder, image_shape=image_shape, **{**SMALL, "batch_size": 32}).fit(x)
    model.to_onnx(tmp_path / "model.onnx")
    for rows in (x[:3], x[:1]):
        found = run(tmp_path / "model.onnx", rows.astype(np.float32))["embedding"]
        assert_rows_are_close(found, model.transform(rows))
    model.to_onnx(tmp_path / "noise.onnx", what="noise")
    found = run(tmp_path / "noise.onnx", x[:3].astype(np.float32))["sigma"]
    assert found.shape == (3, *image_shape)
    assert_rows_are_close(found, model.noise_scale(x[:3], relative=False))


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (wine, {}),
        (heavy_tails, {"scaling": "compressed", "generator": "mlp", "objective": "paper"}),
        (wine, {"generator": "shared", "objective": "paper", "mean": "learned"}),
    ],
)
def test_the_graph_of_the_noise_is_noise_scale(
    make: Callable[[], npt.NDArray[np.float64]], parameters: dict[str, Any], tmp_path: Path
) -> None:
    x = make()
    model = PiNDA(4, **SMALL, **parameters).fit(x)
    model.to_onnx(tmp_path / "noise.onnx", what="noise")
    found = run(tmp_path / "noise.onnx", x[:5])
    wanted = model.noise_scale(x[:5], relative=False)
    assert np.allclose(found["sigma"], wanted, rtol=1e-4)
    assert np.allclose(found["relative_sigma"], model.noise_scale(x[:5]), rtol=1e-4)
    assert ("mean" in found) == (parameters.get("mean") == "learned")


def test_the_learned_mean_of_the_noise_is_in_the_units_of_the_data(tmp_path: Path) -> None:
    x = wine()
    model = PiNDA(4, generator="mlp", objective="paper", mean="learned", **SMALL).fit(x)
    model.to_onnx(tmp_path / "noise.onnx", what="noise")
    # The mean of many draws of x + ε is x + μ.
    found = run(tmp_path / "noise.onnx", x[:1])
    draws = model.augment(np.repeat(x[:1], 20_000, axis=0)).mean(axis=0) - x[0]
    assert (np.abs(draws - found["mean"][0]) < 5 * found["sigma"][0] / np.sqrt(20_000)).all()


def test_the_file_says_what_it_holds(tmp_path: Path) -> None:
    x = load_wine(as_frame=True).data[["alcohol", "ash"]]
    PiNDA(1, **SMALL).fit(x).to_onnx(tmp_path / "model.onnx")
    facts = {entry.key: entry.value for entry in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert facts["what"] == "embedding"
    assert facts["pinoise"]
    assert json.loads(facts["features"]) == ["alcohol", "ash"]
    assert json.loads(facts["columns"]) == ["alcohol", "ash", "pinda0"]
