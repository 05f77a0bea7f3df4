"""What the constructors of several methods ask of their arguments."""

from __future__ import annotations

from torch import nn

from pinoise.errors import UserError


def check_positive(name: str, value: float) -> float:
    """Return a number that must be positive.

    >>> check_positive("temperature", 0.5)
    0.5
    """
    if not value > 0:
        raise UserError(f"{name} is {value}: it must be positive.")
    return value


def check_momentum(name: str, value: float) -> float:
    """Return the share of the old that is kept at every step.

    >>> check_momentum("momentum", 0.99)
    0.99
    """
    if not 0 <= value <= 1:
        raise UserError(f"{name} is {value}: it must lie between 0 and 1.")
    return value


def check_size(name: str, value: int, *, least: int = 1) -> int:
    """Return a number of things.

    >>> check_size("queue", 4096)
    4096
    """
    if value < least:
        raise UserError(f"{name} is {value}: it must be at least {least}.")
    return value


def width(name: str, module: nn.Module) -> int:
    """Return how many features a module gives.

    >>> width("head", nn.Linear(3, 2))
    2
    """
    features = getattr(module, "out_features", None)
    if not isinstance(features, int):
        raise UserError(f"the {name} does not say how many features it gives: set its integer attribute out_features.")
    return features


def check_predictor(head: nn.Module, predictor: nn.Module) -> None:
    """Refuse a predictor whose output cannot be compared with a projection.

    >>> check_predictor(nn.Linear(5, 3), nn.Linear(3, 3))
    """
    given, wanted = width("predictor", predictor), width("head", head)
    if given != wanted:
        raise UserError(f"the predictor gives {given} features and the head {wanted}: both must give as many.")
