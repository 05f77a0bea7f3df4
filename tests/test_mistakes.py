"""Mistakes that were once easy to make with parts of one's own and with comparisons, each by its sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor, nn

import pinoise
from pinoise.choices import ENCODER, METHOD, VIEW, find, options_of
from pinoise.data import ReadOptions, from_arrays, open_source
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.experiments.plans import plan
from pinoise.training.build import build_model
from pinoise.training.config import Settings, parse_settings, read_choice
from pinoise.training.folder import create_folder, read_config
from pinoise.views import Batch

X = np.random.default_rng(0).normal(size=(40, 6))


def build(**settings: Any) -> Any:
    standardizer = Standardizer.fit(X)
    small = {"encoder": {"hidden": 8, "out_features": 4}}
    return build_model(parse_settings({**small, **settings}), standardizer, make_rows(X, standardizer))


class Net(nn.Module):
    """An encoder whose default option is an object, and which has a method called build."""

    def __init__(self, shape: tuple[int, ...], *, width: int = 4, activation: Any = nn.GELU) -> None:
        super().__init__()
        self.out_features = width
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), width), activation())

    def build(self, depth: int = 3) -> int:
        return depth

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features


def test_data_sets_of_one_name_stay_apart() -> None:
    sets = [from_arrays(X + shift, np.arange(40) % 2)[0] for shift in (0, 5)]
    settings = {"training": {"epochs": 1, "batch_size": 16}, "encoder": {"hidden": 4}}
    found = pinoise.compare(*sets, methods=["raw"], seeds=1, settings=settings)
    assert list(found.by_data) == ["array", "array (2)"]
    assert len(found.cells) == found.total == 4
    with pytest.raises(UserError, match="seeds is 0"):
        pinoise.compare(sets[0], seeds=0)


@pytest.mark.parametrize("method", ["moco", {"name": "moco"}])
def test_what_makes_a_recipe_cannot_be_changed_in_any_spelling(method: Any) -> None:
    with pytest.raises(UserError, match="method is what makes method 'pinda-paper'"):
        plan(["pinda-paper"], [0], settings={"method": method})


def test_an_option_may_not_be_called_name() -> None:
    def view(x: Tensor, *, name: str = "vit") -> Tensor:
        return x

    with pytest.raises(UserError, match="has an option called 'name'"):
        read_choice(view, VIEW, "views.noise")


def test_a_generator_may_not_register_the_encoder() -> None:
    class Greedy(nn.Module):
        def __init__(self, shape: tuple[int, ...], outputs: int, encoder: nn.Module) -> None:
            super().__init__()
            self.encoder, self.head = encoder, nn.Linear(4, outputs * shape[0])

    with pytest.raises(UserError, match=r"registers the encoder.*keep it in a tuple"):
        build(noise={"generator": Greedy})


@pytest.mark.parametrize("options", [{"drop": ("a",)}, {"missing": "error"}, {"max_categories": 3}])
@pytest.mark.parametrize("source", ["wine", "x.npy"])
def test_options_of_tables_are_refused_where_there_is_none(
    options: Any, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    if "missing" in options and source == "x.npy":
        return  # an array has gaps, too
    with pytest.raises(UserError, match=f"has no named columns, so {next(iter(options))}="):
        open_source(source, ReadOptions(**options))


def test_defaults_that_are_objects_stay_in_the_signature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("mine_of_mistakes")
    mine.Net = Net  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine_of_mistakes", mine)
    settings = parse_settings({"encoder": {"name": "mine_of_mistakes:Net", "width": 3}})
    assert set(options_of(Net)) == {"width", "activation"}  # its method build is not what makes it
    create_folder(tmp_path / "run", settings)
    stored = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert stored["encoder"] == {"name": "mine_of_mistakes:Net", "width": 3}
    assert read_config(tmp_path / "run", trust=True).encoder.options["activation"] is nn.GELU
    given = parse_settings({"encoder": {"name": "mine_of_mistakes:Net", "activation": nn.ReLU}})
    with pytest.raises(UserError, match="the settings hold an object that a file cannot"):
        create_folder(tmp_path / "other", given)
    assert not (tmp_path / "other").exists()


def test_a_path_of_a_file_is_not_an_import_path() -> None:
    with pytest.raises(UserError, match=r"encoder './mine.py:Net' cannot be found"):
        find(ENCODER, "./mine.py:Net")


def test_what_a_users_part_does_wrong_is_one_sentence() -> None:
    model = build(method=lambda first, second: 3.0)
    samples = make_rows(X, Standardizer.fit(X))
    with pytest.raises(UserError, match=r"returned float for 8 samples: it must return one loss per sample"):
        model(Batch(samples[torch.arange(8)], torch.arange(8)))
    with pytest.raises(UserError, match=r"view '.*dict' makes dict, which is not a function"):
        build(views={"augmentations": [dict]})

    class Wrong(nn.BatchNorm2d):
        out_features = 4

    with pytest.raises(UserError, match=r"does not take samples of shape \(6,\): expected 4D input"):
        build(encoder=Wrong(4))


def test_hints_with_several_types_are_checked_in_words() -> None:
    def loss(first: Tensor, second: Tensor, *, mode: Literal["hard", "soft"] | int = "hard") -> Tensor:
        return first.sum(1)

    with pytest.raises(UserError, match=r"setting 'method.mode' is 'sfot': did you mean 'soft'"):
        read_choice({"name": loss, "mode": "sfot"}, METHOD, "method")


def test_a_users_function_called_pi_is_not_the_learned_noise() -> None:
    def pi(x: Tensor) -> Tensor:
        return x + 1

    assert not parse_settings({"views": {"noise": pi}}).is_learned
    assert Settings().is_learned
