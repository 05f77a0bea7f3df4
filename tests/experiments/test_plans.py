from __future__ import annotations

import re
from typing import Any

import pytest

from pinoise.errors import UserError
from pinoise.experiments.plans import plan


def test_a_plan_finds_mistakes_before_any_work() -> None:
    with pytest.raises(UserError, match=r"unknown setting 'training.epoch'"):
        plan(["raw", "fixed"], [0], settings={"training": {"epoch": 3}})
    with pytest.raises(UserError, match="objective is what makes method 'fixed'"):
        plan(["raw", "fixed"], [0], settings={"objective": "paper"})
    with pytest.raises(UserError, match=r"noise.initial_scale is what makes method 'fixed-2'"):
        plan(["raw", "fixed-2"], [0], settings={"noise": {"initial_scale": 1}})
    method = plan(["simcl"], [4], settings={"method": {"temperature": 0.3}})["simcl", 4].method
    assert (method.name, method.options["temperature"]) == ("simcl", 0.3)
    assert plan(["pinda"], [0], settings={"objective": {"weight": 2}})["pinda", 0].objective.name == "supported"


def test_all_rows_of_a_table_see_samples_in_the_same_units() -> None:
    beside = plan(["raw", "untrained", "aug", "fixed"], [0], settings={})
    assert {planned.data.scaling for planned in beside.values()} == {"channels"}
    alone = plan(["raw", "fixed"], [0], settings={})
    assert {planned.data.scaling for planned in alone.values()} == {"auto"}
    with pytest.raises(UserError, match=r"data.scaling is 'features': images are scaled by 'channels'"):
        plan(["raw", "aug"], [0], settings={"data": {"scaling": "features"}})


def temperatures(*methods: str, settings: dict[str, Any] | None = None) -> list[float]:
    planned = plan(methods, [0], settings=settings or {})
    return [planned[method, 0].method.options["temperature"] for method in methods]


def test_what_is_shared_wins_in_every_row_that_has_the_option() -> None:
    rows = ("fixed", "simcl", "clae", "pinda-paper", "pinda-paper-clae-mean", "aug-paper", "pinda")
    assert temperatures(*rows) == [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.5]
    for value in (0.1, 0.3):
        assert set(temperatures(*rows, settings={"method": {"temperature": value}})) == {value}
    assert temperatures("aug-paper", settings={"method": "moco"}) == [0.1]  # the paper's, in another method
    assert temperatures("aug-paper", settings={"method": {"name": "moco", "temperature": 0.2}}) == [0.2]


def test_a_row_without_the_option_stays_as_it_is_and_a_note_names_it() -> None:
    notes: list[str] = []
    rows = ["raw", "untrained", "fixed", "pinda-paper", "pinda"]
    planned = plan(rows, [0, 1], settings={"objective": {"penalty": 1}}, note=notes.append)
    assert planned["pinda-paper", 1].objective.options == {"penalty": 1}
    alone = plan(rows, [0, 1], settings={})
    assert all(planned[key] == alone[key] for key in alone if key[0] != "pinda-paper")
    assert notes == [
        "objective.penalty changes nothing in random noise (σ = 1) and PiNDA: objective has no such option there"
    ]
    notes.clear()
    plan(["raw", "untrained", "pinda-paper"], [0], settings={"objective": {"penalty": 1}}, note=notes.append)
    assert notes == []  # rows that train nothing are not worth a sentence


def test_an_option_that_no_row_has_is_refused_with_those_that_there_are() -> None:
    sentence = (
        "unknown setting 'objective.penalty' in every method of this comparison: of objective, 'fixed' takes none; "
        "'supported' takes weight."
    )
    with pytest.raises(UserError, match=re.escape(sentence)):
        plan(["raw", "fixed", "pinda"], [0], settings={"objective": {"penalty": 1}})
    with pytest.raises(UserError, match=r"unknown setting 'method.temprature' in every method .* temperature"):
        plan(["raw", "untrained"], [0], settings={"method": {"temprature": 1}})
    with pytest.raises(UserError, match=r"setting 'objective.penalty' is -1"):
        plan(["raw", "fixed", "pinda-paper"], [0], settings={"objective": {"penalty": -1}})


def test_to_repeat_what_makes_a_row_is_no_contradiction() -> None:
    settings = {"encoder": {"name": "vit", "patch": 8}}
    planned = plan(["untrained", "aug-dino"], [0], settings=settings)
    assert {each.encoder.options["patch"] for each in planned.values()} == {8}
    assert planned["untrained", 0].encoder.name == "vit"
    with pytest.raises(UserError, match="encoder is what makes method 'aug-dino'"):
        plan(["untrained", "aug-dino"], [0], settings={"encoder": "resnet18"})


def test_the_papers_rows_have_its_penalty_and_stem_on_images_alone() -> None:
    vectors = plan(["pinda-paper"], [0], settings={})["pinda-paper", 0]
    assert vectors.objective.options == {"penalty": 0.0}
    assert vectors.noise.generator.as_dict() == {"name": "mlp", "hidden": 1024}
    rows = ["pinda-paper", "pinda-paper-mean", "aug-paper", "aug-paper-mean", "aug-paper-uniform"]
    images = plan([*rows, "pinda"], [0], settings={"encoder": "resnet18", "noise": {"generator": {"width": 8}}})
    for method in rows:
        assert images[method, 0].objective.options == {"penalty": 1.0}
        generator = images[method, 0].noise.generator
        assert (generator.name, generator.options["stem"], generator.options["width"]) == ("resnet18", "cifar", 8)
    assert images["pinda", 0].noise.generator.name == "shared"
    other = plan(["aug-paper"], [0], settings={"objective": {"penalty": 2}, "noise": {"generator": {"stem": "auto"}}})
    assert other["aug-paper", 0].objective.options == {"penalty": 2.0}
    assert other["aug-paper", 0].noise.generator.options["stem"] == "auto"


def test_usual_options_count_where_a_part_has_them_and_nobody_says_otherwise() -> None:
    usual = {"encoder": {"width": 4, "hidden": 8}, "method": {"temperature": 0.3}}
    told: list[str] = []
    rows = plan(
        ["simcl", "pinda-paper", "aug"], [0], settings={"encoder": {"hidden": 16}}, usual=usual, note=told.append
    )
    assert told == []
    for settings in rows.values():
        assert settings.encoder.options["hidden"] == 16
        assert "width" not in settings.encoder.options
        assert settings.method.options["temperature"] == 0.3
    (byol,) = plan(["aug"], [0], settings={"encoder": "resnet18", "method": "byol"}, usual=usual).values()
    assert byol.encoder.options["width"] == 4
    assert "temperature" not in byol.method.options
