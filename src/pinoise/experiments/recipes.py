"""The methods that are compared, each a name, a title and the settings that make it; all else is shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pinoise.errors import unknown_choice


class Recipe(NamedTuple):
    """How one row of a comparison is made."""

    title: str
    settings: Mapping[str, Any] | None  # None: nothing is trained


def _fixed(sigma: float) -> Recipe:
    return Recipe(f"random noise (σ = {sigma:g})", {"objective": "fixed", "noise": {"initial_scale": sigma}})


def _paper(*, method: str = "simclr", **more: Any) -> dict[str, Any]:
    return {"objective": "paper", "method": {"name": method, "temperature": 0.1}, **more}


def _augmented(title: str, *, views: Mapping[str, Any] | None = None, **more: Any) -> Recipe:
    """Images under SimCLR's augmentations, of which noise is one more."""
    return Recipe(title, {"views": {"augmentations": ["simclr"], **(views or {})}, **more})


RECIPES: dict[str, Recipe] = {
    "raw": Recipe("raw features", None),
    "untrained": Recipe("untrained encoder", None),
    "fixed": _fixed(1.0),
    "fixed-0.5": _fixed(0.5),
    "fixed-2": _fixed(2.0),
    "scarf": Recipe("SCARF", {"views": {"noise": "scarf"}}),
    "dacl": Recipe("DACL mixup", {"views": {"noise": "dacl"}}),
    "vime": Recipe("VIME swap", {"views": {"noise": "vime"}}),
    "modals": Recipe("MODALS transforms", {"views": {"noise": "none", "augmentations": ["modals"]}}),
    "viewmaker": Recipe("Viewmaker", {"objective": "adversarial", "views": {"noise": "viewmaker"}}),
    "simcl": Recipe("SimCL", {"method": "simcl", "views": {"noise": "none"}}),
    "clae": Recipe("CLAE", {"method": "clae", "views": {"noise": "none"}}),
    "neighbours": Recipe("nearest neighbours", {"views": {"noise": "neighbours"}}),
    "pinda-paper": Recipe("PiNDA (paper)", _paper()),
    "pinda-paper-mean": Recipe("PiNDA (paper, μ learned)", _paper(noise={"mean": "learned"})),
    "pinda-paper-clae": Recipe("PiNDA + CLAE (paper)", _paper(method="clae")),
    "pinda-adversarial": Recipe("PiNDA (adversarial)", {"objective": "adversarial"}),
    "pinda-information": Recipe("PiNDA (information)", {"objective": "information"}),
    "aug": _augmented("augmentations", views={"noise": "none"}),
    "aug-fixed": _augmented("augmentations + random noise", objective="fixed"),
    "aug-paper": _augmented("augmentations + PiNDA (paper, λ = 1)", objective={"name": "paper", "penalty": 1.0}),
    "aug-pinda": _augmented("augmentations + PiNDA", objective={"name": "supported", "neighbours": 0}),
    "aug-compose": _augmented(
        "augmentations, PiNDA on top", views={"pairing": "compose"}, objective={"name": "supported", "neighbours": 0}
    ),
    "aug-neighbours": _augmented("augmentations + PiNDA along the data", objective="supported"),
    "pinda": Recipe("PiNDA", {"objective": "supported"}),
}

DEFAULT_METHODS = ("raw", "untrained", "fixed", "scarf", "simcl", "clae", "pinda-paper", "pinda")
VECTOR_METHODS = (
    "raw",
    "untrained",
    "fixed",
    "fixed-0.5",
    "fixed-2",
    "scarf",
    "dacl",
    "vime",
    "viewmaker",
    "simcl",
    "clae",
    "neighbours",
    "pinda-paper",
    "pinda",
)
IMAGE_METHODS = (
    "raw",
    "untrained",
    "aug",
    "aug-fixed",
    "aug-paper",
    "aug-pinda",
    "aug-compose",
    "aug-neighbours",
    "fixed",
    "pinda",
)
ALWAYS = ("raw", "untrained")
SUITE_NAMES = ("vectors", "images")
OURS = "pinda"
"""The method that rivals are held against."""


def choose_methods(names: list[str]) -> list[str]:
    """Check the names and put the rows that are always printed before them.

    >>> choose_methods(["scarf", "raw"])
    ['raw', 'untrained', 'scarf']
    """
    for name in names:
        if name not in RECIPES:
            raise unknown_choice("method", name, RECIPES)
    return list(dict.fromkeys([*ALWAYS, *names]))


def is_trained(method: str) -> bool:
    """Whether the method trains an encoder with an augmentation, and so takes part in ranks.

    >>> is_trained("raw"), is_trained("scarf")
    (False, True)
    """
    return RECIPES[method].settings is not None
