from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.model import load_run
from pinoise.networks import ResNet18
from pinoise.noise import PiNoise
from pinoise.training.build import build_standardizer, channels_together, feature_scale
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training

RESNET: dict[str, Any] = {"name": "resnet18", "width": 4}


def draw_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    "values",
    [
        {"encoder": RESNET},
        {"encoder": "vit"},
        {"noise": {"generator": "unet"}},
        {"views": {"augmentations": ["crop"]}},
        {"data": {"scaling": "channels"}},
    ],
)
def test_images_are_standardised_by_channel_where_any_part_is_for_images(values: dict[str, Any]) -> None:
    x = draw_images(9, 8, 6, 3)
    x[:, 2, 3] = 7  # a pixel that never varies
    found = build_standardizer(parse_settings(values), x)
    assert found.shape == (3, 8, 6)
    by_channel = x.astype(float).reshape(-1, 3)
    np.testing.assert_allclose(found.mean, np.broadcast_to(by_channel.mean(axis=0)[:, None, None], (3, 8, 6)))
    np.testing.assert_allclose(found.scale, np.broadcast_to(by_channel.std(axis=0)[:, None, None], (3, 8, 6)))
    unit = feature_scale(found)
    np.testing.assert_allclose(unit, x.transpose(0, 3, 1, 2).std(axis=0) / found.scale, rtol=1e-5, atol=1e-7)
    assert not unit[:, 2, 3].any()


def test_without_a_part_for_images_their_pixels_are_features() -> None:
    found = build_standardizer(parse_settings({}), draw_images(9, 8, 6, 3))
    assert found.shape == (8, 6, 3)
    np.testing.assert_allclose(found.deviation, 1)


class Own(nn.Module):
    """An encoder as a user writes one."""

    for_images = False

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape, self.out_features = shape, 6
        self.layer = nn.Linear(math.prod(shape), 6)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (m, 6)."""
        features: Tensor = self.layer(x.flatten(1))
        return features


class OwnOfImages(Own):
    for_images = True


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[bool, str]:
    """The import paths of two classes in a module, by whether they take images."""
    module = ModuleType("own_networks")
    module.Own, module.OwnOfImages = Own, OwnOfImages  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_networks", module)
    return {False: "own_networks:Own", True: "own_networks:OwnOfImages"}


@pytest.mark.parametrize(("takes_images", "shape"), [(True, (3, 8, 6)), (False, (8, 6, 3))])
def test_a_module_of_the_users_is_called_with_the_shape_of_a_sample(
    own: dict[bool, str], tmp_path: Path, takes_images: bool, shape: tuple[int, ...]
) -> None:
    np.save(tmp_path / "x.npy", draw_images(12, 8, 6, 3))
    settings = parse_settings(
        {
            "data": {"source": str(tmp_path / "x.npy")},
            "encoder": own[takes_images],
            "embedding": "learned",
            "training": {"epochs": 1, "batch_size": 6, "device": "cpu"},
        }
    )
    run_training(tmp_path / "run", settings, reporter=Quiet())
    run = load_run(tmp_path / "run", trust=True)
    assert isinstance(run.embedding.encoder, Own)
    assert run.embedding.encoder.shape == shape
    assert isinstance(run.noise, PiNoise)
    assert run.embedding(torch.zeros(2, *shape)).shape == (2, 6)


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_a_run_starts_from_published_weights_and_no_longer_needs_them(tmp_path: Path, name: str) -> None:
    published = ResNet18((3, 8, 8), width=4).state_dict()
    published["bn1.running_mean"] += 0.5
    classifier = {"fc.weight": torch.zeros(10, 32), "fc.bias": torch.zeros(10)}
    weights = tmp_path / name
    save = torch.save if name.endswith(".pth") else safetensors.torch.save_file
    save({**published, **classifier}, weights)
    values = {
        "data": {"source": str(tmp_path / "x.npy")},
        "encoder": {**RESNET, "weights": str(weights)},
        "method": {"name": "moco", "queue": 32, "momentum": 1.0},  # keys stay those of the weights
        "training": {"epochs": 1, "batch_size": 6, "device": "cpu", "learning_rate": 1e-9},
    }
    np.save(tmp_path / "x.npy", draw_images(12, 8, 8, 3))
    run = tmp_path / "run"
    run_training(run, parse_settings(values), reporter=Quiet())
    model = torch.load(run / "checkpoints/last.ckpt", weights_only=True)["model"]
    for key, parameter in ResNet18((3, 8, 8), width=4).named_parameters():
        torch.testing.assert_close(model[f"method.encoder.{key}"], published[key], atol=1e-6, rtol=0)
        assert torch.equal(model[f"method.key_network.network.0.{key}"], published[key])
        assert model[f"method.encoder.{key}"].shape == parameter.shape

    weights.unlink()
    values["training"]["epochs"] = 2
    run_training(run, parse_settings(values), reporter=Quiet())
    assert isinstance(load_run(run).embedding.encoder, ResNet18)
    with pytest.raises(UserError, match=rf"{name} does not exist"):
        run_training(tmp_path / "new", parse_settings(values), reporter=Quiet())
    assert not (tmp_path / "new").exists()


def test_convolutions_have_their_channels_together_and_all_else_is_as_it_was() -> None:
    torch.manual_seed(0)
    plain = ResNet18((3, 8, 8), width=4)
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    x = torch.randn(4, 3, 8, 8)
    expected = plain(x)
    plain.load_state_dict(before)  # whose statistics have seen nothing
    found = channels_together(plain)
    assert found is plain
    for name, weight in found.state_dict().items():
        assert torch.equal(weight, before[name]), name
        assert weight.ndim != 4 or weight.is_contiguous(memory_format=torch.channels_last), name
    torch.testing.assert_close(found(x), expected, rtol=1e-3, atol=1e-4)
    maps = found.maps(x)
    assert maps.is_contiguous(memory_format=torch.channels_last)
