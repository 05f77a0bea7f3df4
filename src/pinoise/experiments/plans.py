"""The plan of a comparison: the settings of every method and seed, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from pinoise.errors import UserError, either
from pinoise.experiments.recipes import RECIPES, is_trained, usual_settings
from pinoise.training.build import check_options
from pinoise.training.config import (
    VECTOR_ENCODER,
    Choice,
    Settings,
    complete,
    merge,
    override,
    parse_settings,
    takes_images,
)
from pinoise.training.loop import check_device

Plans = Mapping[tuple[str, int], Settings]  # the settings of every method and seed

_PARTS = ("encoder", "method", "objective", "noise.generator", "views.noise")


def plan(
    methods: Sequence[str],
    seeds: Sequence[int],
    *,
    settings: Mapping[str, Any],
    usual: Mapping[str, Any] = MappingProxyType({}),
    encoder: str = VECTOR_ENCODER,
    note: Callable[[str], None] = lambda _: None,
) -> Plans:
    """Return the settings of every method and seed, so that a mistake in them costs no time.

    What is shared wins in every method. An option of a part, such as ``method.temperature``, counts where the part of
    a method has it. The other methods stay as they are, and a note names them.

    Args:
        methods: names of recipes.
        seeds: one fit for each.
        settings: what all methods share, as nested configuration; what makes a recipe is not theirs to change.
        usual: options of parts that count, without a note, wherever a part has them and ``settings`` says nothing.
        encoder: that of methods that name none. All else that a recipe does not say, it does not have, on images too.
        note: called with a sentence about options that some methods do not have.

    >>> rows = plan(["simcl", "pinda-paper"], [0], settings={"method": {"temperature": 0.2}})
    >>> [settings.method.options["temperature"] for settings in rows.values()]
    [0.2, 0.2]
    """
    given = dict(_leaves(settings))
    if taken := given.keys() & {"data.source", "data.label", "embedding", "training.seed"}:
        raise UserError(f"a comparison sets {min(taken)} itself: use --data, --label, --embedding and --seeds.")
    for method in methods:
        made_of = dict(_leaves(RECIPES[method].settings or {}))
        for path in sorted(given):
            if path in made_of and given[path] != made_of[path]:
                raise UserError(f"{path} is what makes method {method!r}: leave it out, or leave out the method.")
    options = {path: value for path, value in given.items() if _is_option(path, given)}
    chosen = {method: _chosen(method, merge({"encoder": encoder}, settings), options) for method in methods}
    parts = {method: parse_settings(values).parts for method, values in chosen.items()}
    _check_options(options, parts, note)
    images = any(takes_images(parse_settings(values)) for values in chosen.values())
    plans = {}
    for method in methods:
        left_open = {
            path: value
            for path, value in _leaves(merge(usual_settings(method, images=images), usual))
            if path not in given and path not in dict(_leaves(RECIPES[method].settings or {}))
        }
        fitting = [(path, value) for path, value in (left_open | options).items() if _fits(path, parts[method])]
        values = merge(chosen[method], override({}, fitting))
        for seed in seeds:  # nobody reads the information here, and it takes time
            trained = {"training": {"seed": seed, "information_draws": 0}}
            plans[method, seed] = complete(parse_settings(merge(values, trained)))
    for planned in plans.values():
        check_device(planned.training.device)
        check_options(planned)
    if images:  # the rows of one table see samples in the same units
        return {key: _in_units_of_images(planned) for key, planned in plans.items()}
    return plans


def _is_option(path: str, given: Mapping[str, Any]) -> bool:
    """Whether a setting is an option of a part that the user does not choose beside it."""
    section = path.rpartition(".")[0]
    return section in _PARTS and section not in given


def _chosen(method: str, settings: Mapping[str, Any], options: Collection[str]) -> dict[str, Any]:
    """Return what makes a method with what all share, but for the options of parts."""
    made_of = RECIPES[method].settings or {}
    taken = {*options, *dict(_leaves(made_of))}
    shared = sorted(_leaves(settings), key=itemgetter(0))  # a part's name comes before its options
    return override(made_of, [(path, value) for path, value in shared if path not in taken])


def _fits(path: str, parts: Mapping[str, Choice]) -> bool:
    section, _, option = path.rpartition(".")
    return option in parts[section].takes


def _check_options(
    options: Iterable[str], parts: Mapping[str, Mapping[str, Choice]], note: Callable[[str], None]
) -> None:
    """Refuse an option that no method has, and name the methods without one that others have."""
    for path in options:
        section = path.rpartition(".")[0]
        # The rows that are always there train nothing, so that only their encoder counts.
        rows = [method for method in parts if is_trained(method) or (section == "encoder" and method == "untrained")]
        rows = rows or list(parts)
        without = [method for method in rows if not _fits(path, parts[method])]
        if len(without) == len(rows):
            found = {parts[method][section].name: parts[method][section].takes for method in rows}
            takes = "; ".join(f"{name!r} takes {', '.join(sorted(names)) or 'none'}" for name, names in found.items())
            raise UserError(f"unknown setting {path!r} in every method of this comparison: of {section}, {takes}.")
        if without:
            titles = either([RECIPES[method].title for method in without], last="and")
            note(f"{path} changes nothing in {titles}: {section} has no such option there")


def _in_units_of_images(settings: Settings) -> Settings:
    if takes_images(settings) or settings.data.scaling != "auto":
        return settings
    return settings.model_copy(update={"data": replace(settings.data, scaling="channels")})


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths of nested settings and their values; a part is at one path, as a plain name and with options."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield (before.rstrip(".") if key == "name" else before + key), value


def with_steps(settings: Settings, steps: int, *, rows: int) -> Settings:
    """Return settings with enough whole epochs for this number of steps."""
    per_epoch = max(1, rows // settings.training.batch_size)
    training = settings.training.model_copy(update={"epochs": math.ceil(steps / per_epoch)})
    return settings.model_copy(update={"training": training})
