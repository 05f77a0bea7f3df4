from __future__ import annotations

import pytest

from pinoise.errors import UserError
from pinoise.experiments.recipes import DEFAULT_METHODS, SUITES, choose_methods


def test_lists_of_methods_hold_known_ones_and_ours() -> None:
    for names in (DEFAULT_METHODS, *(suite.methods for suite in SUITES.values())):
        assert choose_methods(list(names)) == list(names)
        assert "pinda" in names


def test_raw_and_untrained_are_always_there_and_first() -> None:
    assert choose_methods(["scarf", "raw", "scarf"]) == ["raw", "untrained", "scarf"]
    with pytest.raises(UserError, match="did you mean 'scarf'"):
        choose_methods(["sacrf"])
