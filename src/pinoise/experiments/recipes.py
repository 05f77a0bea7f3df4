"""The methods that are compared, each a name, a title and the settings that make it; all else is shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pinoise.errors import unknown_choice


class Recipe(NamedTuple):
    """How one row of a comparison is made."""

    title: str
    settings: Mapping[str, Any] | None  # None: nothing is trained


RECIPES: dict[str, Recipe] = {
    "raw": Recipe("raw features", None),
    "untrained": Recipe("untrained encoder", None),
    "fixed": Recipe("random noise (σ = 1)", {"objective": "fixed"}),
    "scarf": Recipe("SCARF", {"views": {"noise": "scarf"}}),
    "vime": Recipe("VIME swap", {"views": {"noise": "vime"}}),
    "dacl": Recipe("DACL mixup", {"views": {"noise": "dacl"}}),
    "modals": Recipe("MODALS transforms", {"views": {"noise": "none", "augmentations": ["modals"]}}),
    "simcl": Recipe("SimCL", {"method": "simcl", "views": {"noise": "none"}}),
    "clae": Recipe("CLAE", {"method": "clae", "views": {"noise": "none"}}),
    "pinda-paper": Recipe("PiNDA (paper)", {"objective": "paper"}),
    "pinda-paper-mean": Recipe("PiNDA (paper, μ learned)", {"objective": "paper", "noise": {"mean": "learned"}}),
    "pinda-paper-clae": Recipe("PiNDA + CLAE (paper)", {"objective": "paper", "method": "clae"}),
}

DEFAULT_METHODS = ("raw", "untrained", "fixed", "scarf", "simcl", "clae", "pinda-paper")
ALWAYS = ("raw", "untrained")


def choose_methods(names: list[str]) -> list[str]:
    """Check the names and put the rows that are always printed before them.

    >>> choose_methods(["scarf", "raw"])
    ['raw', 'untrained', 'scarf']
    """
    for name in names:
        if name not in RECIPES:
            raise unknown_choice("method", name, RECIPES)
    return list(dict.fromkeys([*ALWAYS, *names]))
