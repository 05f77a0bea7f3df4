"""From the flat parameters of ``PiNDA``, as scikit-learn wants them, to the settings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pinoise.choices import ENCODER, GENERATOR, LARGEST_SEED, METHOD, OBJECTIVE, Distrust, Kind, find, options_of
from pinoise.data.layout import image_layout
from pinoise.errors import UserError, brief
from pinoise.training.config import IMAGE_ENCODER, VECTOR_ENCODER, Settings, follow_kind, image_part, parse_settings

# What a parameter is called whose setting has another name.
_NAMES = {
    "encoder.out_features": "n_components",
    "encoder": "encoder",
    "noise.generator": "generator",
    "views.augmentations": "augmentations",
}


def settings_from(
    parameters: Mapping[str, Any], *, seed: int, coloured: bool = True, distrust: Distrust | None = None
) -> Settings:
    """Validate the parameters; a mistake is said by the name that the parameter has, not the setting.

    Args:
        parameters: of the estimator, by name.
        seed: of the fit.
        coloured: whether the colours of images can be changed.
        distrust: the file that the parameters are from, if the user has not said to trust it.

    >>> from pinoise import PiNDA
    >>> settings_from(vars(PiNDA(epochs=3)), seed=0).training.epochs
    3
    >>> settings_from(vars(PiNDA(n_components=0)), seed=0)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: setting 'n_components' is 0: input should be greater than or equal to 1.
    """

    def named(*names: str) -> dict[str, Any]:
        return {name: parameters[name] for name in names}

    def given(*names: str) -> dict[str, Any]:
        """Return the parameters that are not left open."""
        return {name: parameters[name] for name in names if parameters[name] not in (None, "auto")}

    images = parameters["image_shape"] is not None
    hidden = parameters["hidden"]
    sizes = {"out_features": parameters["n_components"], "hidden": hidden}
    augmentations = parameters["augmentations"]
    if isinstance(augmentations, str) or not isinstance(augmentations, Sequence | None):
        raise UserError(f"augmentations is {augmentations!r}: give a list of them, as in augmentations=['scarf'].")
    values: dict[str, Any] = {
        **named("embedding"),
        "data": {**named("scaling"), **columns_from(parameters)},
        "encoder": _section(ENCODER, _encoder(parameters["encoder"], images=images), distrust, where_it_fits=sizes),
        "method": _section(METHOD, parameters["method"], distrust, its_own=named("temperature")),
        "noise": {
            **named("distribution", "mean"),
            **given("covariance", "neighbours", "amplitude", "initial_scale"),
            "generator": _section(GENERATOR, parameters["generator"], distrust, where_it_fits={"hidden": hidden}),
        },
        "objective": _section(OBJECTIVE, parameters["objective"], distrust, its_own=named("penalty")),
        "views": given("pairing"),
        "training": {
            **named("epochs", "batch_size", "learning_rate", "noise_learning_rate", "device"),
            **named("patience", "min_improvement"),
            "seed": seed,
        },
    }
    if augmentations is not None:
        values["views"]["augmentations"] = tuple(augmentations)
    settings = parse_settings(values, names=_NAMES, distrust=distrust)
    _check_image_shape(parameters["image_shape"], settings)
    return follow_kind(settings, images=images, coloured=coloured).settings


def _encoder(value: Any, *, images: bool) -> Any:
    """Return the encoder with a name in place of ``auto``, so that its options are known."""
    section = value if isinstance(value, Mapping) else {"name": value}
    name = section.get("name", ENCODER.default)
    if isinstance(name, str) and name == ENCODER.default:
        return {**section, "name": IMAGE_ENCODER if images else VECTOR_ENCODER}
    return value


_TABLE_PARAMETERS = ("text", "categorical", "drop", "keep", "na")


def columns_from(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of the columns of a table, as options of ``ReadOptions``.

    >>> from pinoise import PiNDA
    >>> columns_from(vars(PiNDA(text=["comment"])))
    {'text': ('comment',), 'missing': 'median', 'mark_missing': True}
    """
    given = {name: parameters[name] for name in _TABLE_PARAMETERS if parameters[name] is not None}
    for name, columns in given.items():
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            what = "cell values" if name == "na" else "columns"
            raise UserError(f"{name} is {columns!r}: give a list of {what}, as in {name}=[{str(columns)!r}].")
    listed = {name: tuple(columns) for name, columns in given.items()}
    return {**listed, **{name: parameters[name] for name in ("missing", "mark_missing")}}


def _section(
    kind: Kind,
    value: Any,
    distrust: Distrust | None,
    *,
    where_it_fits: Mapping[str, Any] | None = None,
    its_own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a part with the options that are parameters of the estimator; what a dict says wins.

    Args:
        kind: of the part.
        value: a name, a dict or an object.
        distrust: as in ``settings_from``.
        where_it_fits: options for a part that has them.
        its_own: options that must fit, where they are given.
    """
    section = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = section.get("name", kind.default)
    part = name
    if isinstance(name, str) and (":" in name or name in kind.names):
        part = find(kind, name, distrust=distrust)
    fits = {"hidden"} if part is None else set(options_of(part)) if callable(part) else set()
    for option, given in {**(where_it_fits or {}), **(its_own or {})}.items():
        if given is None:
            continue
        if option in fits:
            section.setdefault(option, given)
        elif option in (its_own or {}) and callable(part):
            shown = repr(name) if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
            raise UserError(f"{option} is {given}: {kind.noun} {shown} has no such option; leave it out.")
    return section


def seed_of_state(random_state: Any) -> int:
    """Return a seed drawn from ``random_state``, as scikit-learn draws it.

    >>> seed_of_state(0)
    209652396
    """
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    known = random_state is None or random_state is np.random or isinstance(random_state, np.random.RandomState)
    if not known and not (whole and 0 <= random_state <= LARGEST_SEED):
        raise UserError(
            f"random_state is {brief(random_state)}: give a whole number from 0 to {LARGEST_SEED}, or None."
        )
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
