"""From the flat parameters of ``PiNDA``, as scikit-learn wants them, to the settings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pinoise.data.layout import image_layout
from pinoise.errors import UserError, unknown_choice
from pinoise.training.parse import parse_settings
from pinoise.training.settings import MethodSettings, ObjectiveSettings, Settings, image_part, names_in


def settings_from(parameters: Mapping[str, Any], *, seed: int) -> Settings:
    """Validate the parameters; a mistake is told by the name that the parameter has, not the setting.

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

    values = {
        **named("embedding"),
        "data": named("scaling"),
        "encoder": _encoder(parameters),
        "method": _method(parameters),
        "noise": named("generator", "distribution", "mean", "hidden", "initial_scale"),
        "objective": _objective(parameters),
        "views": named("pairing", "augmentations"),
        "training": {
            **named("epochs", "batch_size", "learning_rate", "noise_learning_rate", "device"),
            "seed": seed,
        },
    }
    settings = parse_settings(values, names={"encoder.out_features": "n_components", "encoder.hidden": "hidden"})
    _check_image_shape(parameters["image_shape"], settings)
    return settings


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
            f"image_shape is {shape} and nothing here is for images: leave it out, or choose an encoder for images, "
            "such as 'resnet18'."
        )


def _encoder(parameters: Mapping[str, Any]) -> dict[str, Any]:
    encoder = parameters["encoder"]
    section = dict(encoder) if isinstance(encoder, Mapping) else {"name": encoder}
    if section.get("name", "mlp") != "mlp":
        return section
    return {"out_features": parameters["n_components"], "hidden": parameters["hidden"], **section}


def _method(parameters: Mapping[str, Any]) -> dict[str, Any]:
    name, temperature = parameters["method"], parameters["temperature"]
    if name not in names_in(MethodSettings):
        raise unknown_choice("method", name, names_in(MethodSettings))
    return {"name": name} if temperature is None else {"name": name, "temperature": temperature}


def _objective(parameters: Mapping[str, Any]) -> dict[str, Any]:
    name, penalty = parameters["objective"], parameters["penalty"]
    if name not in names_in(ObjectiveSettings):
        raise unknown_choice("objective", name, names_in(ObjectiveSettings))
    if penalty and name != "paper":
        raise UserError(f"penalty is {penalty}: it belongs to objective 'paper', not {name!r}.")
    return {
        "name": name,
        **({"penalty": penalty} if name == "paper" else {}),
        **({"neighbours": parameters["neighbours"]} if name == "supported" else {}),
    }
