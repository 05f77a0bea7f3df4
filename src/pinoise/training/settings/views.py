"""Sections for 𝒜 and how views are paired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pinoise.training.settings.base import NonNegative, Positive, Section, Share, named
from pinoise.views.pairing import PairingName


class GaussianSettings(Section):
    """Gaussian noise; ``sigma`` in standard deviations."""

    name: Literal["gaussian"] = "gaussian"
    sigma: Positive = 1.0


class ScarfSettings(Section):
    """SCARF's replacement from empirical marginals."""

    name: Literal["scarf"] = "scarf"
    rate: Share = 0.6


class VimeSettings(Section):
    """VIME's column swap."""

    name: Literal["vime"] = "vime"
    rate: Share = 0.3


class DACLSettings(Section):
    """DACL's mixup, λ ~ U(alpha, 1)."""

    name: Literal["dacl"] = "dacl"
    alpha: Share = 0.9


class NeighbourSettings(Section):
    """One of the ``k`` nearest neighbours in the data."""

    name: Literal["neighbours"] = "neighbours"
    k: Annotated[int, Field(ge=1, le=1000)] = 10


class ViewmakerSettings(Section):
    """Viewmaker's network, as wide as ``noise.hidden``; ``budget`` is the mean size of what it adds, in deviations."""

    name: Literal["viewmaker"] = "viewmaker"
    budget: Positive = 0.05


class ModalsSettings(Section):
    """MODALS' four transforms and how far each goes."""

    name: Literal["modals"] = "modals"
    interpolation: NonNegative = 0.1
    extrapolation: NonNegative = 0.1
    gaussian: NonNegative = 0.1
    difference: NonNegative = 0.1


class IdentitySettings(Section):
    """The sample itself."""

    name: Literal["identity"] = "identity"


class PiSettings(Section):
    """The learned noise that the sections ``noise`` and ``objective`` describe."""

    name: Literal["pi"] = "pi"


class NoNoiseSettings(Section):
    """No noise: predefined augmentations alone, or the method's own."""

    name: Literal["none"] = "none"


class SimCLRPipelineSettings(Section):
    """SimCLR's augmentations of images; ``strength`` is that of the colours."""

    name: Literal["simclr"] = "simclr"
    strength: NonNegative = 0.5


class BYOLPipelineSettings(Section):
    """BYOL's augmentations of images, with solarisation; ``strength`` 1 is the published one."""

    name: Literal["byol"] = "byol"
    strength: NonNegative = 1.0


class CropSettings(Section):
    """Random crops and flips of images with any number of channels."""

    name: Literal["crop"] = "crop"


class BackgroundSettings(Section):
    """Gaussian noise on the background of images alone; ``sigma`` in standard deviations.

    The background comes from ``masks``, a file of the user's, or from a Segment-Anything model whose weights are in the
    file ``weights``.
    """

    name: Literal["background"] = "background"
    sigma: Positive = 1.0
    masks: Path | None = None
    weights: Path | None = None
    model: Literal["vit_b", "vit_l", "vit_h", "mobile_sam"] = "vit_b"


IMAGE_VIEWS = (SimCLRPipelineSettings, BYOLPipelineSettings, CropSettings, BackgroundSettings)

AugmentationSettings = Annotated[
    IdentitySettings
    | GaussianSettings
    | ScarfSettings
    | VimeSettings
    | DACLSettings
    | ModalsSettings
    | NeighbourSettings
    | BackgroundSettings
    | SimCLRPipelineSettings
    | BYOLPipelineSettings
    | CropSettings,
    Field(discriminator="name"),
    named(),
]
NoiseViewSettings = Annotated[
    PiSettings
    | NoNoiseSettings
    | GaussianSettings
    | ScarfSettings
    | VimeSettings
    | DACLSettings
    | NeighbourSettings
    | ViewmakerSettings
    | BackgroundSettings,
    Field(discriminator="name"),
    named("pi"),
]


class ViewSettings(Section):
    """Which views are compared.

    Pairing ``auto`` is ``sampled`` with augmentations; with noise alone ``noise-noise`` for objective ``supported`` and
    ``identity-noise`` for others; ``identity`` with neither.
    """

    pairing: PairingName | Literal["auto"] = "auto"
    noise: NoiseViewSettings = PiSettings()
    augmentations: tuple[AugmentationSettings, ...] = ()
    local_crops: Annotated[int, Field(ge=0, le=32)] = 0  # smaller images beside the two views, for DINO
