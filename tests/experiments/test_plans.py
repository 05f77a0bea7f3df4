from __future__ import annotations

import pytest

from pinoise.errors import UserError
from pinoise.experiments.plans import plan
from pinoise.training.config import scaling_of


def test_a_plan_finds_mistakes_before_any_work() -> None:
    with pytest.raises(UserError, match=r"unknown setting 'training.epoch'"):
        plan(["raw", "fixed"], [0], settings={"training": {"epoch": 3}})
    with pytest.raises(UserError, match="objective is what makes method 'fixed'"):
        plan(["raw", "fixed"], [0], settings={"objective": "paper"})
    with pytest.raises(UserError, match=r"noise.initial_scale is what makes method 'fixed-2'"):
        plan(["raw", "fixed-2"], [0], settings={"noise": {"initial_scale": 1}})
    with pytest.raises(UserError, match=r"method.temperature is what makes method 'pinda-paper'"):
        plan(["pinda-paper"], [0], settings={"method": {"temperature": 0.5}})
    method = plan(["simcl"], [4], settings={"method": {"temperature": 0.3}})["simcl", 4].method
    assert (method.name, method.options["temperature"]) == ("simcl", 0.3)
    assert plan(["pinda"], [0], settings={"objective": {"weight": 2}})["pinda", 0].objective.name == "supported"


def test_all_rows_of_a_table_see_samples_in_the_same_units() -> None:
    beside = plan(["raw", "untrained", "aug", "fixed"], [0], settings={})
    assert {scaling_of(planned) for planned in beside.values()} == {"channels"}
    alone = plan(["raw", "fixed"], [0], settings={})
    assert {scaling_of(planned) for planned in alone.values()} == {"auto"}
    given = plan(["raw", "aug"], [0], settings={"data": {"scaling": "features"}})
    with pytest.raises(UserError, match=r"data.scaling is 'features': images are scaled by 'channels'"):
        scaling_of(given["aug", 0])
