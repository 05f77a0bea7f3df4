"""Every image network, generator and pipeline trains together, on real photographs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.choices import GENERATOR, find, options_of
from pinoise.data import load
from pinoise.data.rows import Rows, make_rows
from pinoise.networks import ResNet, ViT
from pinoise.noise import MLPGenerator, PiNoise, ResNet18Generator, SharedMapGenerator, UNetGenerator
from pinoise.training.build import build_model, build_standardizer
from pinoise.training.callbacks import Quiet, Record
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.loop import Machine, train
from pinoise.training.metrics import model_health
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import run_health
from pinoise.views import Batch

N_IMAGES = 16
METHODS = ("simclr", "moco", "byol", "simsiam", "dino")
ENCODERS: dict[str, dict[str, Any]] = {
    "resnet18": {"width": 4},
    "resnet50": {"width": 4},
    "vit": {"dim": 12, "heads": 3, "depth": 1, "patch": 8},
}
GENERATORS = {
    "mlp": MLPGenerator,
    "resnet18": ResNet18Generator,
    "resnet50": ResNet18Generator,
    "unet": UNetGenerator,
    "shared": SharedMapGenerator,
}
COMMON: dict[str, Any] = {
    "encoder": {"name": "resnet18", **ENCODERS["resnet18"]},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"generator": {"hidden": 8, "width": 4}},
    "training": {"epochs": 1, "batch_size": N_IMAGES, "device": "cpu", "information_draws": 0},
}


@pytest.fixture(scope="module")
def images(real_data: Path) -> np.ndarray:
    """Colour photographs, every other pixel of them."""
    return np.asarray(load("cifar10_sub12k").train.x[:N_IMAGES])[:, ::2, ::2]


def build(images: np.ndarray, **changes: Any) -> tuple[Settings, ContrastiveModel, Rows]:
    settings = parse_settings(merge(COMMON, changes))
    standardizer = build_standardizer(settings, images)
    rows = make_rows(images, standardizer)
    torch.manual_seed(0)
    return settings, build_model(settings, standardizer, rows), rows


def step(settings: Settings, model: ContrastiveModel, rows: Rows) -> list[Record]:
    """Train for the single step that there is, and see that all of θ and ψ learned from it."""
    machine = Machine(torch.device("cpu"))
    history = train(model, rows, settings.training, machine=machine, reporter=Quiet())
    assert [record.step for record in history] == [1]
    assert np.isfinite(history[0].loss)
    assert "non-finite" not in [flag.name for flag in run_health(model, rows, settings, history)]
    gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.requires_grad}
    assert [name for name, gradient in gradients.items() if gradient is None or not gradient.isfinite().all()] == []
    assert [name for name, gradient in gradients.items() if gradient is not None and not gradient.any()] == []
    return history


def noise_of(model: ContrastiveModel) -> PiNoise:
    assert model.noise is not None
    return model.noise


def small(generator: str) -> dict[str, Any]:
    sizes = {"hidden": 8, "width": 4}
    return {
        "name": generator,
        **{name: sizes[name] for name in options_of(find(GENERATOR, generator)) if name in sizes},
    }


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_and_an_encoder_train_with_every_generator(images: np.ndarray, method: str, encoder: str) -> None:
    for number, (generator, kind) in enumerate(GENERATORS.items()):
        settings, model, rows = build(
            images,
            method=method,
            encoder={"name": encoder, **ENCODERS[encoder]},
            noise={"generator": small(generator), "mean": ("zero", "learned")[number % 2]},
        )
        assert isinstance(model.method.encoder, ViT if encoder == "vit" else ResNet)
        assert isinstance(noise_of(model).generator, kind)
        assert len(list(noise_of(model).parameters())) > 1
        step(settings, model, rows)


@pytest.mark.parametrize(
    ("method", "pipeline", "pairing"),
    [(method, ("simclr", "byol", "crop")[i % 3], ("sampled", "compose")[i % 2]) for i, method in enumerate(METHODS)],
)
def test_a_method_trains_by_the_paper_on_noise_beside_a_pipeline(
    images: np.ndarray, method: str, pipeline: str, pairing: str
) -> None:
    settings, model, rows = build(
        images,
        method=method,
        views={"augmentations": [pipeline], "pairing": pairing},
        objective={"name": "paper", "penalty": 2.0},
    )
    assert isinstance(noise_of(model).generator, ResNet18Generator)  # the paper's, where none is named
    x = Batch(rows[torch.arange(N_IMAGES)], torch.arange(N_IMAGES))
    torch.manual_seed(3)
    loss, losses = model.eval()(x)
    torch.manual_seed(3)
    noise = [view.noise.epsilon for view in model.pairing(x) if view.noise is not None]
    sizes = [float(np.linalg.norm(epsilon)) for epsilon in torch.cat(noise).detach().numpy() if epsilon.any()]
    assert 0 < len(sizes) < 2 * N_IMAGES if pairing == "sampled" else len(sizes) == 2 * N_IMAGES
    assert loss.item() - losses.mean().item() == pytest.approx(2 / np.mean(sizes), rel=1e-3)
    step(settings, model.train(), rows)


def test_all_pipelines_and_views_of_vectors_share_one_set(images: np.ndarray) -> None:
    augmentations = ["simclr", "byol", "crop", "identity", "gaussian", "scarf", "vime", "dacl", "neighbours"]
    settings, model, rows = build(images, views={"augmentations": augmentations})
    assert len(model.pairing.augmentations) == 9
    step(settings, model, rows)


@pytest.mark.parametrize("objective", ["supported", "paper", "adversarial", "information"])
def test_every_objective_shapes_the_noise_of_images(images: np.ndarray, objective: str) -> None:
    training = {"information_draws": 2}
    settings, model, rows = build(images, objective=objective, views={"augmentations": ["crop"]}, training=training)
    history = step(settings, model, rows)
    assert np.isfinite(history[-1].metrics["information"])


@pytest.mark.parametrize("method", ["simcl", "clae"])
def test_methods_with_views_of_their_own_take_images(images: np.ndarray, method: str) -> None:
    settings, model, rows = build(images, method=method)
    step(settings, model, rows)
    settings, model, rows = build(images, method=method, views={"noise": "none"})
    step(settings, model, rows)


def test_a_cosine_on_its_way_through_0_is_healthy_and_one_at_its_least_is_not(images: np.ndarray) -> None:
    _, model, rows = build(images, method="simsiam")

    def flagged(contrast: float) -> bool:
        flags = model_health(model, rows, contrast=contrast, batch_size=N_IMAGES)
        return "loss-zero" in [flag.name for flag in flags]

    assert [flagged(contrast) for contrast in (0.0, -0.5, -0.9999)] == [False, False, True]


@pytest.mark.parametrize(("encoder", "side"), [("resnet18", 8), ("vit", 8)])
def test_dino_sees_local_crops_beside_noisy_views(images: np.ndarray, encoder: str, side: int) -> None:
    settings, model, rows = build(
        images,
        method="dino",
        encoder={"name": encoder, **ENCODERS[encoder]},
        views={"local_crops": 3, "augmentations": ["simclr"]},
    )
    shapes = [tuple(view.x.shape[1:]) for view in model.pairing(Batch(rows[torch.arange(4)], torch.arange(4)))]
    assert shapes == [(3, 16, 16)] * 2 + [(3, side, side)] * 3
    step(settings, model, rows)


@pytest.mark.parametrize("channels", [1, 4])
def test_images_of_other_channels_train_as_they_are(images: np.ndarray, channels: int) -> None:
    x = images[..., :1] if channels == 1 else np.concatenate([images, images[..., :1]], axis=3)
    views = {"augmentations": ["simclr" if channels == 1 else "crop"]}
    for generator in GENERATORS:
        settings, model, rows = build(x, views=views, noise={"generator": small(generator)})
        assert rows[torch.arange(2)].shape == (2, channels, 16, 16)
        step(settings, model, rows)


def test_gray_images_without_an_axis_of_channels_are_images_of_one(images: np.ndarray) -> None:
    settings, model, rows = build(images[..., 0], views={"augmentations": ["byol"]})
    assert rows[torch.arange(2)].shape == (2, 1, 16, 16)
    step(settings, model, rows)
