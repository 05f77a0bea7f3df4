"""What is compared with what, as data: the methods with the settings that make them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pinoise.errors import unknown_choice


class Recipe(NamedTuple):
    """How one row of a comparison is made."""

    title: str
    settings: Mapping[str, Any] | None = None  # what makes it; None: no encoder is trained
    paper: bool = False  # whether it has the settings that the paper uses throughout, unless the user says otherwise
    classifier: str | None = None  # on the features themselves, with few labels: see ``evaluation.rivals``
    reduction: str | None = None  # of the features, scored like an embedding: see ``evaluation.rivals``
    needs: str | None = None  # a module that need not be installed


_DATA = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text(encoding="utf-8"))

RECIPES: dict[str, Recipe] = {}
for _name, _values in _DATA["methods"].items():
    RECIPES[_name] = Recipe(**_values)
DEFAULT_METHODS: tuple[str, ...] = tuple(_DATA["default"])
IMAGE_METHODS: tuple[str, ...] = tuple(_DATA["default_of_images"])

_PAPER: dict[str, dict[str, Any]] = _DATA["paper"]

SEEDS = 3  # how many seeds every fit is repeated with
MOST_SEEDS = 1000  # of one comparison

EPOCHS = 20  # how often every fit sees every row, unless steps are given

ALWAYS = ("raw", "untrained")
OURS = "pinda"  # the method that its rivals are compared with


def choose_methods(names: Sequence[str]) -> list[str]:
    """Check the names and put the rows that are always printed before them.

    >>> choose_methods(["scarf", "raw"])
    ['raw', 'untrained', 'scarf']
    """
    for name in names:
        if name not in RECIPES:
            raise unknown_choice("method", name, RECIPES)
    return list(dict.fromkeys([*ALWAYS, *names]))


def usual_settings(method: str, *, images: bool) -> Mapping[str, Any]:
    """Return the options of parts that a method has unless the user says otherwise.

    >>> usual_settings("pinda-paper", images=False), usual_settings("pinda", images=False)
    ({'method': {'temperature': 0.1}}, {})
    """
    if not RECIPES[method].paper:
        return {}
    return {**_PAPER["always"], **(_PAPER["images"] if images else {})}


def is_trained(method: str) -> bool:
    """Whether the method trains an encoder with an augmentation.

    >>> is_trained("raw"), is_trained("scarf")
    (False, True)
    """
    return RECIPES[method].settings is not None


def is_ranked(method: str) -> bool:
    """Whether the method is something that one would choose; the untrained encoder is there to compare with.

    >>> is_ranked("raw"), is_ranked("untrained")
    (True, False)
    """
    return method != "untrained"


def sees_features(method: str) -> bool:
    """Whether the method works on the features themselves, so that no encoder and no setting of it counts.

    >>> sees_features("raw"), sees_features("forest"), sees_features("untrained")
    (True, True, False)
    """
    return not is_trained(method) and method != "untrained"


def installed(method: str) -> bool:
    """Whether the packages of the method are here.

    >>> installed("raw")
    True
    """
    needs = RECIPES[method].needs
    return needs is None or find_spec(needs) is not None
