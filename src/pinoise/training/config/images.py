"""What settings mean for images where they are silent. Which samples are images is told in ``data.layout``.

Of what was measured (``benchmarks/image_noise.py``), small differences between neighbours on top of augmentations and
of the image itself gave the best kNN on average over two sets: ``docs/images.md`` has the figures and their limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from pinoise.choices import PairingName
from pinoise.data.dataset import Samples
from pinoise.data.layout import are_images, have_colours
from pinoise.training.config.parse import parse_settings
from pinoise.training.config.settings import IMAGE_ENCODER, VECTOR_ENCODER, Settings, encoder_of, takes_images

# Views of images beside the noise: for pictures, for other numbers of channels or values, and the image as it is.
COLOURED, UNCOLOURED, ITSELF = "simclr", "crop", "identity"
PAIRING: PairingName = "compose"
COVARIANCE, AMPLITUDE = "differences", 0.5
NEIGHBOURS = 0  # the nearest images by their pixels are often of another class

_ALONE = ("identity-noise", "noise-noise", "identity")  # pairings without augmentations


class Followed(NamedTuple):
    """Settings in which nothing is left open, and what a user should know about how they came about."""

    settings: Settings
    changes: Mapping[str, Any]  # what follows from images, by path
    notes: tuple[str, ...] = ()


def follow(settings: Settings, x: Samples) -> Followed:
    """Return settings in which nothing is left open, for these samples. A setting that the user gave stays.

    >>> import numpy as np
    >>> found = follow(Settings(), np.zeros((4, 32, 32, 3), np.uint8))
    >>> found.settings.encoder.name, found.settings.neighbours
    ('resnet18', 0)
    """
    shape = tuple(map(int, x.shape[1:]))
    if len(shape) < 2:  # vectors
        return follow_kind(settings, images=False)
    found = follow_kind(settings, images=are_images(x), coloured=len(shape) > 3 or have_colours(x))
    if found.changes:
        shown = ", ".join(f"{path}={_written(value)}" for path, value in found.changes.items())
        note = (
            f"samples are images, so {shown} follow; --set changes each, and --encoder {VECTOR_ENCODER} takes "
            "pixels as vectors"
        )
    elif settings.encoder.part is None and not takes_images(found.settings):
        sides = " × ".join(map(str, shape))
        note = f"samples of {sides} numbers are taken as vectors; --encoder {IMAGE_ENCODER} takes them as images"
    else:
        return found
    return found._replace(notes=(note,))


def _written(value: Any) -> str:
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


def follow_kind(settings: Settings, *, images: bool, coloured: bool = True) -> Followed:
    """Return settings in which nothing is left open, for samples of a kind.

    Args:
        settings: as the user gave them. A setting that the user gave stays.
        images: whether samples are images, for encoder ``auto``. With another encoder, the parts decide.
        coloured: whether the colours of images can be changed.

    >>> follow_kind(Settings(), images=False).settings.encoder.name
    'mlp'
    >>> found = follow_kind(Settings.model_validate({"views": {"augmentations": ["byol"]}}), images=True)
    >>> list(found.changes)
    ['encoder', 'objective.neighbours', 'views.pairing', 'noise.covariance', 'noise.amplitude']
    """
    encoder = encoder_of(settings, images=images)
    found = settings.model_copy(update={"encoder": encoder})
    if not takes_images(found):
        return Followed(complete(found), {})
    changes: dict[str, Any] = {} if settings.encoder.part is not None else {"encoder": encoder.name}
    if "augmentations" not in settings.views.model_fields_set and settings.views.pairing not in _ALONE:
        changes["views.augmentations"] = (COLOURED if coloured else UNCOLOURED, ITSELF)
    beside = bool(changes.get("views.augmentations", settings.views.augmentations))
    if beside and settings.is_learned and not settings.is_automatic:
        changes |= _noise_beside(settings)
    return Followed(complete(found, changes), changes)


def _noise_beside(settings: Settings) -> dict[str, Any]:
    """Return the noise beside augmentations: weak, on top of them, and not towards neighbours."""
    objective, noise, views = settings.objective, settings.noise, settings.views
    if "neighbours" not in objective.options:
        return {}
    changes: dict[str, Any] = {} if "neighbours" in objective.given else {"objective.neighbours": NEIGHBOURS}
    on_top = "pairing" not in views.model_fields_set or views.pairing == PAIRING
    kind_is_open = "covariance" not in noise.model_fields_set and noise.distribution == "gaussian"
    if changes.get("objective.neighbours", settings.neighbours) or not on_top or not kind_is_open:
        return changes
    changes |= {"views.pairing": PAIRING, "noise.covariance": COVARIANCE}
    if noise.amplitude is None and noise.initial_scale is None:
        changes["noise.amplitude"] = AMPLITUDE
    return changes


def complete(settings: Settings, changes: Mapping[str, Any] | None = None) -> Settings:
    """Return settings with changes at given paths, in which every setting counts as given, so that none follows later.

    >>> follow_kind(complete(Settings.model_validate({"encoder": "resnet18"})), images=True).changes
    {}
    """
    values: dict[str, Any] = {name: dict(value) if isinstance(value, BaseModel) else value for name, value in settings}
    objective, changed = settings.objective, dict[str, Any]()
    for path, value in (changes or {}).items():
        section, _, key = path.rpartition(".")
        if section == "objective":
            changed[key] = value
        elif section:
            values[section][key] = value
    # The defaults of a user's part stay in its signature: a file of settings does not hold them.
    given = objective.given.union(changed) if objective.own else objective.takes
    values["objective"] = replace(objective, options={**objective.options, **changed}, given=given)
    return parse_settings(values)
