"""The plan of a comparison: the settings of every method and seed, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pinoise.errors import UserError
from pinoise.experiments.recipes import RECIPES
from pinoise.training.config import Settings, merge, parse_settings, takes_images
from pinoise.training.device import check_device

Plans = Mapping[tuple[str, int], Settings]  # the settings of every method and seed


def plan(methods: Sequence[str], seeds: Sequence[int], *, settings: Mapping[str, Any]) -> Plans:
    """Return the settings of every method and seed, so that a mistake in them costs no time.

    Args:
        methods: names of recipes.
        seeds: one fit for each.
        settings: what all methods share, as nested configuration; what a recipe is made of is not theirs to change.
    """
    given = set(_paths(settings))
    if taken := given & {"data.source", "data.label", "embedding", "training.seed"}:
        raise UserError(f"a comparison sets {min(taken)} itself: use --data, --label, --embedding and --seeds.")
    for method in methods:
        made_of = set(_paths(RECIPES[method].settings or {}))
        for path in sorted(given):
            if path in made_of:
                raise UserError(f"{path} is what makes method {method!r}: leave it out, or leave out the method.")
    plans = {
        (method, seed): parse_settings(
            merge(
                merge(RECIPES[method].settings or {}, settings),
                {"training": {"seed": seed, "information_draws": 0}},  # nobody reads it here, and it takes time
            )
        )
        for method in methods
        for seed in seeds
    }
    for planned in plans.values():
        check_device(planned.training.device)
    if any(map(takes_images, plans.values())):  # the rows of one table see samples in the same units
        return {key: _in_units_of_images(planned) for key, planned in plans.items()}
    return plans


def _in_units_of_images(settings: Settings) -> Settings:
    if takes_images(settings) or settings.data.scaling != "auto":
        return settings
    return settings.model_copy(update={"data": replace(settings.data, scaling="channels")})


def _paths(values: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the paths of nested settings; a part is at one path, as a plain name and with options."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{key}.")
        else:
            yield before.rstrip(".") if key == "name" else before + key


def with_steps(settings: Settings, steps: int, *, rows: int) -> Settings:
    """Return settings with enough whole epochs for this number of steps."""
    per_epoch = max(1, rows // settings.training.batch_size)
    training = settings.training.model_copy(update={"epochs": math.ceil(steps / per_epoch)})
    return settings.model_copy(update={"training": training})
