from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from pinoise import PiNDA
from pinoise.errors import UserError
from pinoise.methods import BYOL, CLAE, DINO, MemoryBank, MoCo, SimCL, SimCLR, SimSiam
from pinoise.networks import EMBEDDINGS, ENCODERS, PrototypeHead, ResNet, ViT
from pinoise.noise import GENERATORS, Supported
from pinoise.noise.support import NEIGHBOURS
from pinoise.training.parse import parse_settings
from pinoise.training.settings import (
    AdversarialSettings,
    DINOSettings,
    EncoderSettings,
    InformationSettings,
    MethodSettings,
    MLPSettings,
    NeighbourSettings,
    NoiseSettings,
    NoiseViewSettings,
    ObjectiveSettings,
    ResNet18Settings,
    ResNet50Settings,
    Settings,
    SimCLRSettings,
    SupportedSettings,
    ViTSettings,
    embedding_of,
    names_in,
    noise_defaults,
)


def test_the_default_is_noise_along_the_data_and_a_joined_embedding() -> None:
    settings = Settings()
    assert isinstance(settings.objective, SupportedSettings)
    assert min(settings.objective.weight, settings.objective.neighbours) > 0
    assert embedding_of(settings) == "joined"
    assert settings.method == SimCLRSettings(temperature=0.5)
    assert settings.encoder == MLPSettings()
    assert settings.data.scaling == "auto"
    assert (settings.noise.generator, settings.noise.positive, settings.noise.initial_scale) == ("auto", "auto", None)


def default(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


def test_settings_modules_and_the_estimator_have_the_same_defaults() -> None:
    settings = Settings()
    methods = (SimCLR, SimCL, CLAE, MoCo, MemoryBank, BYOL, SimSiam, DINO)
    for name, method in zip(names_in(MethodSettings), methods, strict=True):
        chosen = parse_settings({"method": name}).method
        assert chosen.name == method.__name__.lower()
        for key, value in chosen.model_dump(exclude={"name", "prototypes"}).items():
            assert default(method, key) == value, (name, key)
    assert default(PrototypeHead, "prototypes") == DINOSettings().prototypes
    for resnet in (ResNet18Settings(), ResNet50Settings()):
        assert (default(ResNet, "width"), default(ResNet, "stem")) == (resnet.width, resnet.stem)
    for key, value in ViTSettings().model_dump(exclude={"name"}).items():
        assert default(ViT, key) == value, key
    assert default(Supported, "weight") == SupportedSettings().weight
    assert SupportedSettings().neighbours == NeighbourSettings().k == NEIGHBOURS
    for parameter, value in {
        "n_components": MLPSettings().out_features,
        "embedding": settings.embedding,
        "encoder": settings.encoder.name,
        "hidden": MLPSettings().hidden,
        "method": settings.method.name,
        "objective": settings.objective.name,
        "distribution": settings.noise.distribution,
        "mean": settings.noise.mean,
        "generator": settings.noise.generator,
        "pairing": settings.views.pairing,
        "augmentations": settings.views.augmentations,
        "neighbours": SupportedSettings().neighbours,
        "initial_scale": settings.noise.initial_scale,
        "scaling": settings.data.scaling,
        "epochs": settings.training.epochs,
        "batch_size": settings.training.batch_size,
        "learning_rate": settings.training.learning_rate,
        "noise_learning_rate": settings.training.noise_learning_rate,
        "temperature": None,
        "device": settings.training.device,
    }.items():
        assert default(PiNDA, parameter) == value, parameter


@pytest.mark.parametrize("generator", ["auto", "global", "mlp", "shared"])
@pytest.mark.parametrize("positive", ["auto", "softplus", "abs", "fixed-entropy"])
@pytest.mark.parametrize("objective", ["supported", "paper", "fixed", "adversarial", "information"])
def test_what_is_given_is_kept_and_what_is_auto_follows_the_objective(
    objective: str, generator: str, positive: str
) -> None:
    found = noise_defaults(
        parse_settings({"objective": objective, "noise": {"generator": generator, "positive": positive}})
    )
    expected_generator = generator if generator != "auto" else {"supported": "global"}.get(objective, "mlp")
    bounded = objective in ("supported", "adversarial")
    expected_positive = positive if positive != "auto" else "fixed-entropy" if bounded else "softplus"
    assert found == ("constant" if objective == "fixed" else expected_generator, expected_positive)
    assert found.generator in GENERATORS


def test_names_are_those_of_the_sections() -> None:
    assert names_in(MethodSettings) == ("simclr", "simcl", "clae", "moco", "memorybank", "byol", "simsiam", "dino")
    assert names_in(EncoderSettings) == (*ENCODERS, "module")
    assert names_in(ObjectiveSettings) == ("supported", "paper", "fixed", "adversarial", "information")
    assert {"pi", "none", "neighbours", "viewmaker"} < set(names_in(NoiseViewSettings))
    for name in names_in(ObjectiveSettings):
        assert parse_settings({"objective": name}).objective.name == name
    for name in names_in(NoiseViewSettings):
        objective = "adversarial" if name == "viewmaker" else "supported"
        assert parse_settings({"views": {"noise": name}, "objective": objective}).views.noise.name == name
    with pytest.raises(UserError, match="'viewmaker' learns against the encoder"):
        parse_settings({"views": {"noise": "viewmaker"}})
    assert set(names_of(Settings, "embedding")) == {*EMBEDDINGS, "auto"}
    assert set(names_of(NoiseSettings, "generator")) == {*GENERATORS, "auto", "module"} - {"constant"}


def names_of(section: Any, field: str) -> list[str]:
    """The names in a field that is a Literal, or several of them."""
    annotation = section.model_fields[field].annotation
    inner = get_args(annotation)
    return [name for part in inner for name in (get_args(part) or (part,))]


def test_options_of_every_objective_are_its_own() -> None:
    assert parse_settings({"objective": {"weight": 2, "neighbours": 0}}).objective == SupportedSettings(
        weight=2.0, neighbours=0
    )
    assert parse_settings({"objective": {"name": "information", "draws": 6}}).objective == InformationSettings(draws=6)
    assert parse_settings({"objective": "adversarial"}).objective == AdversarialSettings()
    with pytest.raises(ValidationError):
        Settings.model_validate({"objective": {"name": "adversarial", "penalty": 1}})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        NoiseSettings().hidden = 3
