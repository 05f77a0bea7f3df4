"""From the flat parameters of ``PiNDA``, as scikit-learn wants them, to the settings of a run, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pinoise.choices import AUTO, ENCODER, GENERATOR, METHOD, OBJECTIVE, Kind, find, options_of
from pinoise.data.layout import image_layout
from pinoise.errors import UserError
from pinoise.model import Model
from pinoise.training.config import (
    IMAGE_ENCODER,
    VECTOR_ENCODER,
    Settings,
    follow_kind,
    image_part,
    override,
    parse_settings,
)

COLUMNS = ("text", "categorical", "drop", "keep", "na")
"""The parameters that are about the columns of a table."""

_LISTS = (*COLUMNS, "augmentations")  # None leaves each as it is
# The path of the setting that a parameter is.
_PATHS = {
    **{name: name for name in ("embedding", "encoder", "method", "objective")},
    **{name: f"data.{name}" for name in ("scaling", "missing", "mark_missing", *COLUMNS)},
    **{name: f"noise.{name}" for name in ("distribution", "mean", "covariance", "neighbours", "generator")},
    **{name: f"noise.{name}" for name in ("amplitude", "initial_scale")},
    **{name: f"views.{name}" for name in ("pairing", "augmentations")},
    **{name: f"training.{name}" for name in ("epochs", "batch_size", "learning_rate", "noise_learning_rate")},
    **{name: f"training.{name}" for name in ("device", "patience", "min_improvement")},
}
_NAMES = {path: name for name, path in _PATHS.items()} | {"encoder.out_features": "n_components"}


def settings_from(parameters: Mapping[str, Any], *, seed: int, coloured: bool = True) -> Settings:
    """Validate the parameters; a mistake is said by the name that the parameter has, not the setting.

    Args:
        parameters: of the estimator, by name.
        seed: of the fit.
        coloured: whether the colours of images can be changed.

    >>> from pinoise import PiNDA
    >>> settings_from(vars(PiNDA(epochs=3)), seed=0).training.epochs
    3
    >>> settings_from(vars(PiNDA(n_components=0)), seed=0)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: setting 'n_components' is 0: input should be greater than or equal to 1.
    """
    images = parameters["image_shape"] is not None
    given = {name: parameters[name] for name in _PATHS if name not in _LISTS or parameters[name] is not None}
    for name in set(_LISTS) & given.keys():
        if isinstance(given[name], str) or not isinstance(given[name], Sequence):
            raise UserError(f"{name} is {given[name]!r}: give a list, as in {name}=[{given[name]!r}].")
        given[name] = tuple(given[name])
    hidden = {"hidden": parameters["hidden"]}
    sizes, auto = {"out_features": parameters["n_components"], **hidden}, IMAGE_ENCODER if images else VECTOR_ENCODER
    given["encoder"] = _section(ENCODER, given["encoder"], where_it_fits=sizes, auto=auto)
    given["generator"] = _section(GENERATOR, given["generator"], where_it_fits=hidden)
    given["method"] = _section(METHOD, given["method"], temperature=parameters["temperature"])
    given["objective"] = _section(OBJECTIVE, given["objective"], penalty=parameters["penalty"])
    values = override({"training": {"seed": seed}}, [(_PATHS[name], value) for name, value in given.items()])
    settings = parse_settings(values, names=_NAMES)
    _check_image_shape(parameters["image_shape"], settings)
    return follow_kind(settings, images=images, coloured=coloured).settings


def _section(
    kind: Kind, value: Any, *, where_it_fits: Mapping[str, Any] | None = None, auto: str | None = None, **options: Any
) -> dict[str, Any]:
    """Return a part with the options that are parameters of the estimator; what a dict says wins.

    Args:
        kind: of the part.
        value: a name, a dict or an object.
        where_it_fits: options for a part that has them.
        auto: the name in place of ``auto``, so that its options are known.
        **options: those that must fit, where they are given.
    """
    section = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = section.setdefault("name", kind.default)
    if isinstance(name, str) and name == AUTO:
        section["name"] = name = auto or name
    part = find(kind, name) if isinstance(name, str) and (":" in name or name in kind.names) else name
    takes = {"hidden"} if part is None else set(options_of(part)) if callable(part) else set()
    options |= {option: given for option, given in (where_it_fits or {}).items() if option in takes}
    return {option: given for option, given in options.items() if given is not None} | section


def parameters_of(model: Model) -> dict[str, Any]:
    """Return the parameters of a ``PiNDA`` with the settings of a model, in which nothing is left open.

    Settings without a parameter, such as ``head.hidden`` and ``views.noise``, are not among them.
    """
    values = model.settings.model_dump()
    found: dict[str, Any] = {name: reduce(getitem, path.split("."), values) for name, path in _PATHS.items()}
    found["drop"] = tuple(name for name in found["drop"] if name != values["data"]["target"])
    found |= {name: found[name] or None for name in COLUMNS}
    if "out_features" in found["encoder"]:
        found["n_components"] = found["encoder"].pop("out_features")
    shape = model.preparation.shape
    return found | {"image_shape": shape if len(shape) > 1 else None, "random_state": values["training"]["seed"]}


def seed_of_state(random_state: Any) -> int:
    """Return a seed drawn from ``random_state``, as scikit-learn draws it.

    >>> seed_of_state(0)
    209652396
    """
    return int(check_random_state(random_state).randint(2**31))


def rows_of_pixels(X: Any, image_shape: tuple[int, ...]) -> Any:
    """Return images as rows of their pixels, as scikit-learn has samples; such rows are returned as they are.

    >>> rows_of_pixels(np.zeros((5, 8, 6, 3)), (8, 6, 3)).shape
    (5, 144)
    """
    shape = np.shape(X)
    if len(shape) > 2 and shape[1:] == tuple(image_shape):
        return np.asarray(X).reshape(shape[0], -1)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != math.prod(image_shape)):
        raise UserError(
            f"X has the shape {shape}: image_shape is {tuple(image_shape)}, so it must be "
            f"(n, {', '.join(map(str, image_shape))}), or (n, {math.prod(image_shape)}) with a row for each image."
        )
    return X


def _check_image_shape(shape: Any, settings: Settings) -> None:
    part = image_part(settings)
    if shape is None:
        if part is not None:
            raise UserError(f"{part} is for images: give image_shape, such as (28, 28) or (32, 32, 3).")
        return
    if not isinstance(shape, tuple) or not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
        raise UserError(f"image_shape is {shape!r}: give a tuple of whole numbers, such as (28, 28) or (32, 32, 3).")
    image_layout(shape)
    if part is None:
        raise UserError(
            f"image_shape is {shape} and nothing here is for images: leave it out, choose an encoder for images, such "
            "as 'resnet18', or give your own the attribute for_images = True."
        )
