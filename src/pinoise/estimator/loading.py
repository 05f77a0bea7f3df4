"""From the settings of a model back to the parameters of ``PiNDA``: what ``settings_from`` does, the other way."""

from __future__ import annotations

from typing import Any

from pinoise.model import Model


def parameters_of(model: Model) -> dict[str, Any]:
    """Return the parameters of a ``PiNDA`` with the settings of a model, in which nothing is left open.

    Settings without a parameter, such as ``head.hidden`` and ``views.noise``, are not among them.
    """
    values = model.settings.model_dump()
    encoder, noise, views, data, training = (values[name] for name in ("encoder", "noise", "views", "data", "training"))
    sizes = {"n_components": encoder.pop("out_features")} if "out_features" in encoder else {}
    shape = model.preparation.shape
    data["drop"] = tuple(name for name in data["drop"] if name != data["target"])
    columns = {name: data[name] or None for name in ("text", "categorical", "drop", "keep", "na")}
    return {
        **sizes,
        **columns,
        **{name: values[name] for name in ("embedding", "method", "objective")},
        **{name: noise[name] for name in ("distribution", "mean", "covariance", "neighbours", "generator")},
        **{name: views[name] for name in ("pairing", "augmentations")},
        **{name: data[name] for name in ("scaling", "missing", "mark_missing")},
        **{name: training[name] for name in ("epochs", "batch_size", "learning_rate", "noise_learning_rate")},
        **{name: training[name] for name in ("device", "patience", "min_improvement")},
        "encoder": encoder,
        "image_shape": shape if len(shape) > 1 else None,
        **{name: noise[name] for name in ("amplitude", "initial_scale")},
        "random_state": training["seed"],
    }
