"""What follows where settings are silent: from the kind of the samples, and from the objective.

Which samples are images is told in ``data.layout``. Of what was measured for them (``benchmarks/image_noise.py``),
small differences between neighbours on top of augmentations and of the image itself gave the best kNN on average over
two sets: ``docs/images.md`` has the figures and their limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pinoise.choices import ENCODER, GENERATOR, VIEW, PairingName, options_of
from pinoise.data.dataset import Samples
from pinoise.data.layout import are_images, have_colours
from pinoise.data.standardizer import Scaling
from pinoise.errors import UserError
from pinoise.training.config.section import OPEN, Choice, read_choice
from pinoise.training.config.settings import Settings, takes_images
from pinoise.training.objectives import Objective

VECTOR_ENCODER, IMAGE_ENCODER = "mlp", "resnet18"  # what ``auto`` means

# Views of images beside the noise: for pictures, for other numbers of channels or values, and the image as it is.
COLOURED, UNCOLOURED, ITSELF = "simclr", "crop", "identity"

# The noise on top of them, of an objective whose noise is along the data. The nearest images by their pixels are often
# of another class, so that images do not move to them.
NEIGHBOURS, PAIRING, COVARIANCE, AMPLITUDE = 0, "compose", "differences", 0.5

_ALONE = ("identity-noise", "noise-noise", "identity")  # pairings without augmentations


class Completion(NamedTuple):
    """Settings in which nothing is left open, and what a user should know about how they came about."""

    settings: Settings
    changes: Mapping[str, Any]  # what follows from images, by path
    notes: tuple[str, ...] = ()


def follow(settings: Settings, x: Samples) -> Completion:
    """Return settings in which nothing is left open, for these samples. A setting that the user gave stays.

    >>> import numpy as np
    >>> found = follow(Settings(), np.zeros((4, 32, 32, 3), np.uint8))
    >>> found.settings.encoder.name, found.settings.noise.neighbours
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


def follow_kind(settings: Settings, *, images: bool, coloured: bool = True) -> Completion:
    """Return settings in which nothing is left open, for samples of a kind.

    Args:
        settings: as the user gave them. A setting that the user gave stays.
        images: whether samples are images, for encoder ``auto``. With another encoder, the parts decide.
        coloured: whether the colours of images can be changed.

    >>> follow_kind(Settings(), images=False).settings.encoder.name
    'mlp'
    >>> found = follow_kind(Settings.model_validate({"views": {"augmentations": ["byol"]}}), images=True)
    >>> list(found.changes)
    ['encoder', 'noise.neighbours', 'views.pairing', 'noise.covariance', 'noise.amplitude']
    """
    found = settings.model_copy(update={"encoder": _encoder(settings.encoder, images=images)})
    if not takes_images(found):
        return Completion(complete(found), {})
    changes: dict[str, Any] = {} if settings.encoder.part is not None else {"encoder": found.encoder.name}
    if "augmentations" not in settings.views.model_fields_set and settings.views.pairing not in _ALONE:
        changes["views.augmentations"] = (COLOURED if coloured else UNCOLOURED, ITSELF)
    beside = bool(changes.get("views.augmentations", settings.views.augmentations))
    if beside and settings.is_learned and settings.objective.trait("neighbours"):
        changes |= _noise_beside(settings)
    for path, value in changes.items():
        section, _, key = path.rpartition(".")
        if key == "augmentations":
            value = tuple(read_choice(name, VIEW, path) for name in value)
        if section:
            inner = getattr(found, section).model_copy(update={key: value})
            found = found.model_copy(update={section: inner})
    return Completion(complete(found), changes)


def _noise_beside(settings: Settings) -> dict[str, Any]:
    """Return the noise beside augmentations: weak, on top of them, and not towards neighbours."""
    noise, pairing = settings.noise, settings.views.pairing
    changes: dict[str, Any] = {} if noise.neighbours is not None else {"noise.neighbours": NEIGHBOURS}
    kind_is_open = noise.covariance == OPEN and noise.distribution == "gaussian"
    if changes.get("noise.neighbours", noise.neighbours) or pairing not in (OPEN, PAIRING) or not kind_is_open:
        return changes
    changes |= {"views.pairing": PAIRING, "noise.covariance": COVARIANCE}
    if noise.amplitude is None and noise.initial_scale is None:
        changes["noise.amplitude"] = AMPLITUDE
    return changes


def complete(settings: Settings) -> Settings:
    """Return settings in which nothing is left open: what is silent about the noise, its objective decides.

    Settings that are complete stay as they are.

    >>> noise = complete(Settings()).noise
    >>> noise.generator.name, noise.positive, noise.covariance, noise.neighbours
    ('global', 'fixed-entropy', 'mixed', 10)
    """
    settings = settings.model_copy(update={"encoder": _encoder(settings.encoder)})
    images, views = takes_images(settings), settings.views
    if images and settings.data.scaling not in ("auto", "channels"):
        raise UserError(f"data.scaling is {settings.data.scaling!r}: images are scaled by 'channels'; leave it out.")
    scaling: Scaling = "channels" if images else settings.data.scaling
    pairing = _pairing(settings) if views.pairing == OPEN else views.pairing
    # What is left out counts as given from here on, so that nothing else follows from silence.
    beside = {"pairing": pairing, "augmentations": views.augmentations}
    embedding = ("learned" if images else "joined") if settings.embedding == OPEN else settings.embedding
    return settings.model_copy(
        update={
            "data": replace(settings.data, scaling=scaling),
            "embedding": embedding,
            "noise": settings.noise.model_copy(update=_noise(settings, images=images)),
            "views": views.model_copy(update=beside),
        }
    )


def _noise(settings: Settings, *, images: bool) -> dict[str, Any]:
    """Return what the objective decides of the noise."""
    objective, noise = settings.objective, settings.noise

    def suited(name: str) -> Any:
        return objective.trait(name, getattr(Objective, name))

    generator, covariance = noise.generator, noise.covariance
    if not suited("learns_noise"):
        generator = read_choice("constant", GENERATOR, "noise.generator")
    elif generator.part is None:
        chosen = read_choice(suited("image_generator" if images else "generator"), GENERATOR, "noise.generator")
        fitting = {key: value for key, value in generator.options.items() if key in options_of(chosen.part)}
        generator = read_choice({"name": chosen.name, **fitting}, GENERATOR, "noise.generator")
    if covariance == OPEN:
        gaussian = suited("image_covariance" if images else "covariance")
        covariance = gaussian if noise.distribution == "gaussian" else "diagonal"
    return {
        "generator": generator,
        "covariance": covariance,
        "positive": suited("positive") if noise.positive == OPEN else noise.positive,
        "neighbours": suited("neighbours") if noise.neighbours is None else noise.neighbours,
    }


def _pairing(settings: Settings) -> PairingName:
    if settings.views.augmentations:
        return "sampled"
    if settings.views.noise.name == "none":
        return "identity"
    decided: PairingName = settings.objective.trait("pairing", Objective.pairing)
    return decided if settings.is_learned else Objective.pairing


def _encoder(choice: Choice, *, images: bool = False) -> Choice:
    """Return the encoder: as configured, or in place of ``auto`` a ResNet18 for images and an MLP for vectors."""
    if choice.part is not None:
        return choice
    name = IMAGE_ENCODER if images else VECTOR_ENCODER
    return read_choice({"name": name, **choice.options}, ENCODER, "encoder")
