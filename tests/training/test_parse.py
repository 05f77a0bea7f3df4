from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.methods import CLAE, SimCLR
from pinoise.training.config import Settings, merge, override, parse_assignment, parse_settings, read_yaml
from pinoise.views import ScarfSwap


def test_nothing_given_is_the_default() -> None:
    assert parse_settings({}) == Settings()


def test_a_name_stands_for_a_section() -> None:
    settings = parse_settings({"method": "clae", "views": {"augmentations": ["scarf"]}})
    assert settings.method.part is CLAE
    options = {"temperature": 0.5, "strength": 0.5, "weight": 1.0, "against": "itself"}
    assert settings.method.as_dict() == {"name": "clae", **options}
    assert [view.part for view in settings.views.augmentations] == [ScarfSwap]


def test_a_section_without_a_name_keeps_the_default_name() -> None:
    method = parse_settings({"method": {"temperature": 0.7}}).method
    assert (method.name, method.part, method.options["temperature"]) == ("simclr", SimCLR, 0.7)


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        (
            ["method=simclrr"],
            "setting 'method' is 'simclrr': did you mean 'simclr'? Allowed: simclr, simcl, clae, moco, ",
        ),
        (["method.temprature=3"], "unknown setting 'method.temprature': did you mean 'method.temperature'?"),
        (["method=clae", "method.wight=3"], "unknown setting 'method.wight': did you mean 'method.weight'?"),
        (["training.epochs=0"], "setting 'training.epochs' is 0: input should be greater than or equal to 1."),
        (["encoder.out_features=1000000000"], "input should be less than or equal to 65536."),
        (["views.augmentations=[scraf]"], "did you mean 'scarf'?"),
        (
            ["views.augmentations=[{name: scarf, rat: 3}]"],
            "unknown setting 'views.augmentations.0.rat': did you mean 'views.augmentations.0.rate'?",
        ),
        (["metod=simclr"], "unknown setting 'metod': did you mean 'method'?"),
        (["training.zzzz=1"], "unknown setting 'training.zzzz': allowed there are epochs, batch_size,"),
        (["objective=paper", "objective.penalty=.inf"], "setting 'objective.penalty' is inf"),
        (["objective.penalty=1"], "unknown setting 'objective.penalty': allowed there are weight."),
        (["noise.neighbours=-1"], "setting 'noise.neighbours' is -1"),
        (["objective=information", "objective.draws=1"], "setting 'objective.draws' is 1"),
        (["embedding=joint"], "setting 'embedding' is 'joint': did you mean 'joined'? Allowed: joined, learned, auto."),
        (["noise.positive=exp"], "setting 'noise.positive' is 'exp'. Allowed: softplus, abs, fixed-entropy, auto."),
        (["views.noise=neighbour"], "setting 'views.noise' is 'neighbour': did you mean 'neighbours'?"),
        (["views.augmentations=[viewmaker]"], "'viewmaker' learns against the encoder: choose objective 'adversarial'"),
        (["noise.generator=global", "noise.generator.hidden=3"], "unknown setting 'noise.generator.hidden'"),
        (["noise.generator.hiden=3"], "did you mean 'noise.generator.hidden'?"),
        (["views.augmentations=[{rate: 3}]"], "setting 'views.augmentations.0' is {'rate': 3}: it must name its view."),
        (["method=not.there:Mine"], "method 'not.there:Mine' cannot be found"),
        (["method=pinoise.methods:Mine"], "method 'pinoise.methods:Mine' cannot be found"),
        (["method=3"], "setting 'method' is 3: give a name, an import path, or a class derived from Method"),
        (["objective=fixed", "noise.mean=learned"], "objective 'fixed' learns no noise: change one of them."),
        (["training.epochs=many"], "setting 'training.epochs' is 'many'"),
        (["training.epochs"], "write section.key=value"),
        (["training.epochs=[1"], "is not valid YAML"),
        (["training=5"], "setting 'training' is 5"),
    ],
)
def test_each_mistake_gets_one_sentence(assignments: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_settings(override({}, map(parse_assignment, assignments)))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numpy_numbers_are_numbers() -> None:
    values: dict[str, Any] = {"training": {"epochs": np.int64(3), "learning_rate": np.float64(0.5)}}
    assert parse_settings(values).training.epochs == 3


def test_a_caller_may_have_its_own_names() -> None:
    with pytest.raises(UserError, match=r"'n_components' is 0"):
        parse_settings({"encoder": {"out_features": 0}}, names={"encoder.out_features": "n_components"})


def test_overrides_do_not_touch_what_they_are_given() -> None:
    values: dict[str, Any] = {"training": {"epochs": 1}}
    assert override(values, [("training.epochs", 2)]) == {"training": {"epochs": 2}}
    assert values == {"training": {"epochs": 1}}
    assert merge(values, {"training": {"seed": 3}}) == {"training": {"epochs": 1, "seed": 3}}
    assert values == {"training": {"epochs": 1}}


@pytest.mark.parametrize(("content", "sentence"), [("a: [1", "not valid YAML"), ("- 1", "not a configuration")])
def test_a_bad_configuration_file_is_named(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=f"my.yaml is {sentence}"):
        read_yaml(path)
    with pytest.raises(UserError, match=r"gone.yaml cannot be read"):
        read_yaml(tmp_path / "gone.yaml")


def test_options_are_laid_over_a_part_that_is_an_object() -> None:
    merged = merge({"method": CLAE}, {"method": {"weight": 2}})
    assert merged == {"method": {"name": CLAE, "weight": 2}}
    assert parse_settings(merged).method.options["weight"] == 2
