from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
import yaml
from pydantic import ValidationError
from torch import Tensor, nn

from pinoise.choices import GENERATOR, METHOD, NOISE_VIEW, OBJECTIVE, VIEW
from pinoise.errors import UserError
from pinoise.methods import SimCLR
from pinoise.training.config import NoiseSettings, Settings, complete, follow_kind, parse_settings, read_choice
from pinoise.training.objectives import Supported


def test_the_default_is_noise_along_the_data_and_a_joined_embedding() -> None:
    settings = complete(Settings())
    assert settings.objective.part is Supported
    assert min(settings.objective.options["weight"], settings.noise.neighbours or 0) > 0
    assert (settings.embedding, settings.data.scaling) == ("joined", "auto")
    assert (settings.method.part, settings.method.options["temperature"]) == (SimCLR, 0.5)
    assert settings.encoder.as_dict() == {"name": "mlp", "hidden": 1024, "out_features": 256}
    noise = settings.noise
    assert (noise.generator.name, noise.positive, noise.covariance) == ("global", "fixed-entropy", "mixed")


@pytest.mark.parametrize("generator", ["auto", "global", "mlp", "shared"])
@pytest.mark.parametrize("positive", ["auto", "softplus", "abs", "fixed-entropy"])
@pytest.mark.parametrize("objective", ["supported", "paper", "fixed", "adversarial", "information"])
def test_what_is_given_is_kept_and_what_is_auto_follows_the_objective(
    objective: str, generator: str, positive: str
) -> None:
    values = {"objective": objective, "noise": {"generator": generator, "positive": positive}}
    found = complete(parse_settings(values)).noise
    expected_generator = generator if generator != "auto" else {"supported": "global"}.get(objective, "mlp")
    bounded = objective in ("supported", "adversarial")
    expected_positive = positive if positive != "auto" else "fixed-entropy" if bounded else "softplus"
    assert found.generator.name == ("constant" if objective == "fixed" else expected_generator)
    assert found.positive == expected_positive
    assert found.neighbours == (10 if objective == "supported" else 0)


@pytest.mark.parametrize("encoder", ["auto", "resnet18"])
@pytest.mark.parametrize(
    "values",
    [
        {},
        *({"objective": name} for name in OBJECTIVE.names),
        {"noise": {"neighbours": 3, "covariance": "diagonal"}, "objective": "paper"},
        {"noise": {"distribution": "uniform", "initial_scale": 0.5}},
        {"views": {"noise": "scarf", "augmentations": ["dacl"]}},
    ],
)
def test_what_is_complete_has_nothing_open_and_is_read_back_as_it_was_written(values: Any, encoder: str) -> None:
    settings = complete(parse_settings({**values, "encoder": encoder}))
    again = parse_settings(yaml.safe_load(yaml.safe_dump(settings.model_dump(mode="json"))))
    assert again == settings
    assert follow_kind(again, images=True) == (settings, {}, ())
    left = [name for name, value in settings.noise if value in ("auto", None)]
    assert set(left) <= {"amplitude", "initial_scale", "normalize"}
    assert "auto" not in (settings.encoder.name, settings.embedding, settings.views.pairing)


def test_options_of_what_is_auto_go_to_the_generator_that_has_them() -> None:
    noise = {"generator": {"hidden": 7, "width": 5}}
    for objective, expected in {"supported": {}, "paper": {"hidden": 7}, "fixed": {}}.items():
        found = complete(parse_settings({"objective": objective, "noise": noise})).noise.generator
        assert found.options == expected
    images = complete(parse_settings({"objective": "paper", "noise": noise, "encoder": "resnet18"}))
    assert images.noise.generator.as_dict() == {"name": "resnet18", "hidden": 7, "width": 5, "stem": "auto"}


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (METHOD, lambda name: {"method": name}),
        (OBJECTIVE, lambda name: {"objective": name}),
        (GENERATOR, lambda name: {"noise": {"generator": name}}),
        (NOISE_VIEW, lambda name: {"views": {"noise": name}, "objective": "adversarial"}),
        (VIEW, lambda name: {"views": {"augmentations": [name]}, "objective": "adversarial"}),
    ],
)
def test_every_name_can_be_chosen_and_is_written_as_it_was_read(kind: Any, where: Any) -> None:
    for name in kind.names:
        settings = parse_settings(where(name))
        assert parse_settings(settings.model_dump(mode="json")) == settings


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        NoiseSettings().mean = "learned"


def wave(x: Tensor, strength: float = 0.5, *, shift: int = 2) -> Tensor:
    """A view as a user writes one."""
    return x + strength * torch.sin(x + shift)


class Net(nn.Module):
    """An encoder as a user writes one."""

    def __init__(self, shape: tuple[int, ...], *, out_features: int = 3, **unused: Any) -> None:
        super().__init__()
        self.out_features = out_features


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("mine")
    module.wave, module.Net, module.number = wave, Net, 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)
    return module


@pytest.mark.usefixtures("mine")
def test_options_of_a_users_part_are_those_of_its_signature() -> None:
    found = read_choice({"name": "mine:wave", "shift": 5}, VIEW, "views.augmentations.0")
    assert (found.part, found.options, found.own) == (wave, {"strength": 0.5, "shift": 5}, True)
    assert read_choice("mine:Net", METHOD._replace(names={}), "encoder").options == {"out_features": 3}
    for value, sentence in {
        "strenght": "unknown setting 'a.strenght': did you mean 'a.strength'?",
        "strength": "setting 'a.strength' is 'much': input should be a valid number",
    }.items():
        with pytest.raises(UserError, match=sentence):
            read_choice({"name": "mine:wave", value: "much"}, VIEW, "a")
    with pytest.raises(UserError, match=r"setting 'a' is 3: give a name, an import path, or a View"):
        read_choice(3, VIEW, "a")
    with pytest.raises(UserError, match="view 'mine:number' is of type int: give a View"):
        read_choice("mine:number", VIEW, "a")


def test_an_object_is_a_choice_and_goes_by_its_import_path() -> None:
    assert read_choice(SimCLR, METHOD, "method").name == "pinoise.methods.simclr:SimCLR"
    net = Net((3,))
    found = read_choice(net, METHOD, "encoder")
    assert (found.part, found.name, found.own, found.options) == (net, "Net", True, {})
    with pytest.raises(UserError, match=r"unknown setting 'encoder.out_features': encoder has no settings"):
        read_choice({"name": net, "out_features": 3}, METHOD, "encoder")
