"""The families of hostile cases. A family maps a number and a seed to a case; its first numbers cover every kind."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tests.hostile.case import Case

SIZES = {
    # family: cases in the quick version, cases in the long version
    "data": (120, 800),
    "words": (90, 700),
    "runs": (50, 400),
    "estimator": (40, 220),
}


@cache
def cases(family: str, seed: int) -> tuple[Case, ...]:
    """Return the cases of a family, as many as the long version has."""
    made: tuple[Case, ...] = import_module(f"tests.hostile.families.{family}").cases(seed, SIZES[family][1])
    assert [case.number for case in made] == list(range(len(made)))
    return made


def find_case(name: str, seed: int) -> Case:
    """Return the case of a name such as ``data/17``."""
    family, _, number = name.partition("/")
    return cases(family, seed)[int(number)]


def quick(seed: int) -> list[Case]:
    """Return the cases of the quick version."""
    return [case for family, (few, _) in SIZES.items() for case in cases(family, seed)[:few]]
