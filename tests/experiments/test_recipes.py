from __future__ import annotations

import pytest

from pinoise.errors import UserError
from pinoise.evaluation.rivals import CLASSIFIERS, REDUCTIONS
from pinoise.experiments.recipes import ALWAYS, RECIPES, choose_methods


def test_a_recipe_is_made_in_one_way_by_something_that_exists() -> None:
    for name, recipe in RECIPES.items():
        ways = [recipe.settings, recipe.classifier, recipe.reduction]
        assert sum(way is not None for way in ways) == (0 if name in ALWAYS else 1)
        assert recipe.classifier is None or recipe.classifier in CLASSIFIERS
        assert recipe.reduction is None or recipe.reduction in REDUCTIONS


def test_raw_and_untrained_are_always_there_and_first() -> None:
    assert choose_methods(["scarf", "raw", "scarf"]) == ["raw", "untrained", "scarf"]
    with pytest.raises(UserError, match="did you mean 'scarf'"):
        choose_methods(["sacrf"])
