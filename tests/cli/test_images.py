"""The command on real photographs, as a set of the catalogue and as folders of files."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from pinoise.data import load
from pinoise.model import load_run

pytest.importorskip("kornia")

Command = Callable[..., Any]
SMALL = [
    *("--device", "cpu", "--batch-size", "16", "--set", "training.information_draws=2"),
    *(
        "--set",
        "head.hidden=16",
        "--set",
        "head.out_features=8",
    ),
]
RESNET = ["--encoder", "resnet18", "--set", "encoder.width=4"]
VIT = ["--encoder", "vit", *(f for key in ("patch=8", "dim=12", "depth=1") for f in ("--set", f"encoder.{key}"))]
REAL = ["--data", "cifar10_sub12k", "--rows", "64", *SMALL]
FOLDER = [*RESNET, "--epochs", "1", "--augment", "simclr", "--set", "data.size=16"]


def weights(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.glob("*.safetensors")}


@pytest.mark.parametrize("noise", [[], ["--set", "views.noise=none"]], ids=["with noise", "without"])
def test_the_configuration_of_the_examples_trains(
    pinoise: Command, real_data: Path, folder: Path, noise: list[str]
) -> None:
    example = Path(__file__).parents[2] / "examples" / "images.yaml"
    tiny = [*SMALL, *RESNET[2:], "--rows", "64", "--epochs", "1"]
    trained = pinoise("train", "--config", str(example), "--data", "cifar10_sub12k", *tiny, *noise, "--out", "run")
    assert trained.code == 0, trained.err
    assert load_run("run").settings.views.augmentations[0].name == "simclr"


@pytest.mark.slow
def test_a_run_on_real_images_is_scored_embeds_and_is_reported(pinoise: Command, real_data: Path, folder: Path) -> None:
    choices = ["--method", "byol", *RESNET, "--generator", "shared"]
    assert pinoise("train", *REAL, "--epochs", "1", *choices, "--out", "run").code == 0
    scored = pinoise("evaluate", "run", "--json")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)["scores"].keys() == {"raw", "untrained", "learned"}
    np.save("few.npy", np.asarray(load("cifar10_sub12k").train.x[:10]))
    assert pinoise("embed", "run", "--data", "few.npy", "--out", "z.npy").code == 0
    assert np.load("z.npy").shape == (10, 32)
    assert pinoise("report", "run").code == 0
    assert "data:image/png;base64" in (folder / "run/report.html").read_text()
    with Image.open("run/noise.png") as picture:
        assert min(picture.size) > 100


@pytest.fixture
def photographs(real_data: Path, folder: Path) -> Path:
    """Forty photographs of two classes in files of several sizes and formats."""
    data = load("cifar10_sub12k").train
    for row in range(40):
        place = folder / "photographs" / ("cat", "dog")[row % 2] / f"{row:02}.{('png', 'jpg', 'bmp')[row % 3]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(data.x[row])).resize((20 + row % 5, 18 + row % 7)).save(place)
    return folder / "photographs"


def test_a_folder_trains_and_another_is_embedded_as_it_was(pinoise: Command, photographs: Path) -> None:
    trained = pinoise("train", "--data", "photographs", "--out", "run", *SMALL, *FOLDER)
    assert trained.code == 0, trained.err
    assert "held out 8 of 40 rows for the test part" in trained.err
    others = Path("others")
    others.mkdir()
    for path in sorted(photographs.glob("dog/*"))[:5]:
        shutil.copy(path, others)
    Image.fromarray(np.full((9, 30), 77, dtype=np.uint8)).save(others / "wide_and_gray.png")
    embedded = pinoise("embed", "run", "--data", "others", "--out", "z.npy")
    assert embedded.code == 0, embedded.err

    run = load_run("run")
    pixels = []
    for path in sorted(others.iterdir()):
        with Image.open(path) as image:
            fitted = ImageOps.fit(image.convert("RGB"), (16, 16), Image.Resampling.BILINEAR)
        pixels.append(np.asarray(fitted, dtype=np.float64).transpose(2, 0, 1))
    mean, scale = run.standardizer.mean, run.standardizer.scale
    x = torch.from_numpy((np.stack(pixels) - mean) / scale).float()
    with torch.no_grad():
        expected = run.embedding(x)
    assert expected.shape == (6, 32)
    np.testing.assert_allclose(np.load("z.npy"), expected, rtol=1e-4, atol=3e-5)
    assert pinoise("evaluate", "run").code == 0


def test_a_corrupt_file_is_refused_or_skipped(pinoise: Command, photographs: Path) -> None:
    whole = (photographs / "cat/00.png").read_bytes()
    (photographs / "cat/00.png").write_bytes(whole[: len(whole) // 2])
    train = ["train", "--data", "photographs", "--out", "run", *SMALL, *FOLDER]
    sentence = pinoise(*train).sentence
    assert sentence.startswith("photographs/cat/00.png cannot be decoded (")
    assert "--set data.corrupt=skip" in sentence
    assert not Path("run").exists()
    skipping = pinoise(*train, "--set", "data.corrupt=skip")
    assert skipping.code == 0, skipping.err
    assert re.search(r"note: left out 1 corrupt image \(.*\): cat/00\.png", skipping.err)
    assert "held out 8 of 39 rows" in skipping.err
    embedded = pinoise("embed", "run", "--data", "photographs", "--out", "z.npy")  # as the training folder was read
    assert embedded.code == 0, embedded.err
    assert len(np.load("z.npy")) == 39
