"""Every mistake with images gets one clear sentence and exit code 2, and leaves no folder behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.networks import ResNet18

pytest.importorskip("kornia")

Command = Callable[..., Any]
RESNET = ["--encoder", "resnet18", "--set", "encoder.width=4"]


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small images, masks, weights and a module of a user's, in the current folder."""
    rng = np.random.default_rng(0)
    np.save("colour.npy", rng.integers(0, 256, (24, 16, 16, 3), dtype=np.uint8))
    np.save("four.npy", rng.integers(0, 256, (24, 16, 16, 4), dtype=np.uint8))
    np.save("vectors.npy", rng.normal(size=(24, 64)))
    np.save("small_masks.npy", np.ones((24, 8, 8), dtype=bool))
    np.save("few_masks.npy", np.ones((7, 16, 16), dtype=bool))
    for name in ("words.pth", "words.safetensors"):
        Path(name).write_bytes(b"these are no weights")
    torch.save([torch.ones(2)], "list.pth")
    torch.save({"a": torch.ones(2)}, "other.pth")
    torch.save(ResNet18((3, 16, 16), width=8).state_dict(), "wide.pth")
    Path("mistaken_nets.py").write_text(
        "import torch\ndef number(shape): return 3\ndef no_size(shape): return torch.nn.Flatten()\nthree = 3\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    return folder


def background(**settings: str) -> list[str]:
    given = ", ".join(f"{key}: {value}" for key, value in {"name": "background", **settings}.items())
    return ["--data", "colour.npy", *RESNET, "--set", f"views.augmentations=[{{{given}}}]"]


VECTORS = r"is for images, but samples have the shape \(64,\): images are \(height, width\), "
NO_WEIGHTS = r"is damaged or holds no weights: give a state dict as torch\.save or safetensors writes it"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "vectors.npy", *RESNET], f"^encoder 'resnet18' {VECTORS}"),
        (["--data", "vectors.npy", "--generator", "unet"], f"^noise.generator 'unet' {VECTORS}"),
        (["--data", "vectors.npy", "--augment", "simclr"], f"^the view 'simclr' {VECTORS}"),
        (
            ["--data", "vectors.npy", "--set", "views.augmentations=[{name: background, masks: few_masks.npy}]"],
            f"^the view 'background' {VECTORS}",
        ),
        (["--data", "colour.npy", *RESNET, "--set", "data.scaling=features"], r"images are scaled by 'channels'"),
        (["--data", "four.npy", *RESNET, "--augment", "simclr"], r"images of 4 channels .* choose the pipeline 'crop'"),
        (
            ["--data", "colour.npy", *RESNET, "--method", "moco", "--set", "method.queue=40"],
            r"method.queue is 40 but a step makes 48 keys, two for each of 24 rows: make the queue larger",
        ),
        (
            ["--data", "colour.npy", "--encoder", "vit", "--set", "encoder.patch=5"],
            r"patch=5 does not divide images of 16×16 pixels: allowed are 1, 2, 4, 8, 16",
        ),
        (["--data", "colour.npy", "--encoder", "vit", "--set", "encoder.heads=5"], r"heads=5 does not divide dim=192"),
        (background(), r"'background' was given neither masks nor weights: name a file of masks"),
        (background(masks="few_masks.npy", weights="other.pth"), r"'background' was given masks and weights"),
        (background(masks="small_masks.npy"), r"masks of shape \(24, 8, 8\) do not fit .* = \(24, 16, 16\)"),
        (background(masks="few_masks.npy"), r"few_masks\.npy: 7 masks for 24 training rows: give one for each"),
        (background(weights="words.pth"), r"words\.pth is damaged or holds no weights: give SAM's checkpoint"),
        (
            background(weights="list.pth"),
            r"list\.pth holds list, not a plain mapping of names to tensors: give SAM's checkpoint",
        ),
        (
            ["--data", "colour.npy", *RESNET, "--method", "byol", "--set", "views.local_crops=2"],
            r"views\.local_crops belongs to method 'dino', not 'byol': leave it out",
        ),
        (
            ["--data", "colour.npy", "--method", "dino", "--encoder", "mlp", "--set", "views.local_crops=2"],
            r"views\.local_crops makes smaller images, but encoder 'mlp' does not take them",
        ),
        (
            ["--data", "colour.npy", *RESNET, "--method", "byol", "--temperature", "0.5"],
            r"^unknown setting 'method\.temperature'",
        ),
        (["--data", "colour.npy", *RESNET, "--set", "data.size=8"], r"colour\.npy is not a folder of images, so size"),
    ],
)
def test_a_choice_that_images_do_not_take_is_one_sentence(
    pinoise: Command, files: Path, arguments: list[str], sentence: str
) -> None:
    result = pinoise("train", "--out", "run", "--epochs", "1", "--device", "cpu", *arguments)
    assert re.search(sentence, result.sentence), result.sentence
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.pth", r"missing\.pth does not exist: give a state dict"),
        ("words.safetensors", rf"words\.safetensors {NO_WEIGHTS}"),
        ("other.pth", r"these weights do not fit a ResNet18 of width 4 .*\(conv1\.weight is missing\)"),
        ("wide.pth", r"conv1\.weight has shape \(8, 3, 3, 3\) instead of \(4, 3, 3, 3\)\): choose what they"),
    ],
)
def test_weights_to_start_from_that_do_not_serve_are_one_sentence(
    pinoise: Command, files: Path, name: str, sentence: str
) -> None:
    given = ["--data", "colour.npy", *RESNET, "--set", f"encoder.weights={name}"]
    result = pinoise("train", "--out", "run", "--device", "cpu", *given)
    assert re.search(sentence, result.sentence), result.sentence
    assert not Path("run").exists()
