"""``pinoise export`` as a stranger uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from pinoise.model import load_run

TINY = ("--epochs", "1", "--batch-size", "64", "--set", "encoder.hidden=8", "--set", "encoder.out_features=4")


@pytest.fixture
def run(pinoise: Callable[..., Any], tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    assert pinoise("train", "--data", "wine", "--out", folder, *TINY).code == 0
    return folder


def test_a_run_becomes_a_file_that_embeds_as_embed_does(pinoise: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    said = pinoise("export", run, "--out", tmp_path / "wine.onnx")
    assert said.code == 0
    assert "x (rows, 13) → embedding (rows, 17)" in said.out
    assert said.err == ""
    assert pinoise("embed", run, "--data", "wine", "--out", tmp_path / "z.npy").code == 0
    session = onnxruntime.InferenceSession(tmp_path / "wine.onnx")
    x = np.asarray(load_run(run).read("wine", labelled=False).train.x, dtype=np.float64)
    (found,) = session.run(None, {"x": x})
    assert np.abs(found - np.load(tmp_path / "z.npy")).max() < 1e-4


def test_the_noise_of_a_run_is_exported(pinoise: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    said = pinoise("export", run, "--out", tmp_path / "n.onnx", "--what", "noise", "--json")
    facts = json.loads(said.out)
    assert facts["outputs"] == {"sigma": ["rows", 13], "relative_sigma": ["rows", 13]}
    assert facts["difference"] <= 1e-5


def test_mistakes_are_one_sentence(pinoise: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    assert "has extension '.pt': a graph is written as .onnx" in pinoise("export", run, "--out", "m.pt").sentence
    assert "is not a folder" in pinoise("export", tmp_path / "no", "--out", tmp_path / "m.onnx").sentence
    assert "unknown what 'x'" in pinoise("export", run, "--out", tmp_path / "m.onnx", "--what", "x").sentence
    (tmp_path / "m.onnx").write_text("mine")
    assert "already exists" in pinoise("export", run, "--out", tmp_path / "m.onnx").sentence
    assert (tmp_path / "m.onnx").read_text() == "mine"


def test_a_run_without_noise_has_none_to_export(pinoise: Callable[..., Any], tmp_path: Path) -> None:
    assert pinoise("train", "--data", "wine", "--out", tmp_path / "r", *TINY, "--set", "views.noise=scarf").code == 0
    said = pinoise("export", tmp_path / "r", "--out", tmp_path / "n.onnx", "--what", "noise")
    assert "has no learned noise" in said.sentence
