"""An ONNX file is written when it is right, and otherwise not at all; a sentence says why."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from torch import Tensor, nn

from pinoise import PiNDA
from pinoise.errors import UserError
from pinoise.export import check, file

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.estimator.HealthWarning")


def fitted(encoder: object = "mlp") -> PiNDA:
    model = PiNDA(4, hidden=8, encoder=encoder, epochs=1, batch_size=64, random_state=0)
    return model.fit(load_wine().data)


class LooksAtValues(nn.Module):
    out_features = 13

    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.detach().sum()) > 0 else x + 1e-3 * x.square()


class CountsRows(nn.Module):
    out_features = 13

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.linspace(0, 0.1, len(x))[:, None]


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("what was there")
    model = fitted()
    right = check.computed
    monkeypatch.setattr(check, "computed", lambda *given: {name: each + 1e-3 for name, each in right(*given).items()})
    with pytest.raises(UserError, match=r"was not written: onnxruntime's embedding differs from pinoise's by"):
        model.to_onnx(path)
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]
    assert path.read_text() == "what was there"


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (LooksAtValues, "LooksAtValues cannot be made an ONNX graph: "),
        (CountsRows, "CountsRows cannot be made an ONNX graph for any number of rows: .*x.shape"),
    ],
)
def test_an_encoder_that_is_no_graph_is_refused(encoder: type[nn.Module], sentence: str, tmp_path: Path) -> None:
    model = fitted(encoder())
    with pytest.raises(UserError, match=sentence) as caught:
        model.to_onnx(tmp_path / "model.onnx")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_of_ones_own_is_exported(tmp_path: Path) -> None:
    encoder = nn.Sequential(nn.Linear(13, 6), nn.Tanh())
    encoder.out_features = 6  # type: ignore[assignment]
    fitted(encoder).to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").exists()


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown what 'nois': did you mean 'noise'"):
        fitted().to_onnx(tmp_path / "model.onnx", what="nois")  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["onnx", "onnxruntime", "onnxscript"])
def test_without_the_libraries_the_extra_is_named(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=r"export needs the extra 'export': pip install 'pinoise\[export\]'"):
        model.to_onnx(tmp_path / "model.onnx")


def test_a_difference_is_measured_against_the_largest_value_of_its_row() -> None:
    wanted = check.ExpectedOutput(np.array([[1.0, 1000.0], [1.0, 2.0]]))
    assert check.largest_difference(np.array([[1.01, 1000.0], [1.0, 2.0]]), wanted) == pytest.approx(1e-5)
    assert check.largest_difference(np.array([[1.0, 1000.0], [1.01, 2.0]]), wanted) == pytest.approx(0.005)
    assert check.largest_difference(np.array([[np.nan, 1000.0], [1.0, 2.0]]), wanted) == np.inf
    assert file.CLOSENESS == 1e-5
